"""Lets generated requests get past the first refusals, and checks the names of headers."""

import schemathesis

# Headers of HTTP itself, which OpenAPI doesn't list.
OF_HTTP = {"content-type", "content-length", "date", "connection", "keep-alive"}


@schemathesis.hook
def before_call(context, case, kwargs):
    # Requests that repeat the example's key with other parameters would all be refused.
    if case.headers and case.headers.get("Idempotency-Key") == "order-4711":
        del case.headers["Idempotency-Key"]
    # So would those that give a parameter in the query and in the body.
    if case.query and isinstance(case.body, dict):
        for name in case.body:
            case.query.pop(name, None)


@schemathesis.check
def documented_headers(ctx, response, case):
    responses = case.operation.definition.raw["responses"]
    documented = responses.get(str(response.status_code), {}).get("headers", {})
    unknown = set(response.headers) - {name.lower() for name in documented} - OF_HTTP
    assert not unknown, f"Undocumented headers of {response.status_code}: {sorted(unknown)}"
