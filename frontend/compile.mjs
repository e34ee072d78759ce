// frontend/site.mjs bundles this with the script that loads the parts of the WebAssembly.

/** Pauses before another attempt, in milliseconds. */
const PAUSES = [500, 2000, 5000];

/**
 * Loads and compiles a file of WebAssembly. Repeats requests that fail, because mobile networks
 * have gaps and servers restart. Firefox also ends a page's requests when the user leaves the page.
 * By the next attempt, that page is usually gone. If this script reported a failure, the portal
 * would open the page again, and the user couldn't leave it.
 */
export async function compile(address) {
  for (let attempt = 0; ; attempt += 1) {
    let response;
    try {
      response = await fetch(address);
      return await WebAssembly.compileStreaming(response);
    } catch (error) {
      // The file is missing if a newer version of the portal has replaced it.
      if (response?.status === 404 || attempt === PAUSES.length) throw error;
      await new Promise((resume) => setTimeout(resume, PAUSES[attempt]));
    }
  }
}
