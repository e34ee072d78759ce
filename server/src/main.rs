//! The `heliograph` binary.

use axum::Router;
use leptos::prelude::get_configuration;
use leptos_axum::{LeptosRoutes, file_and_error_handler, generate_route_list};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = get_configuration(None)?.leptos_options;
    let address = options.site_addr;
    let routes = generate_route_list(app::App);

    let router = Router::new()
        .leptos_routes(&options, routes, {
            let options = options.clone();
            move || app::shell(options.clone())
        })
        .fallback(file_and_error_handler(app::shell))
        .with_state(options);

    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{address}");
    axum::serve(listener, router).await?;
    Ok(())
}
