const key = "pollux.token";

/** Takes the one-time code out of the address, so that neither history nor a copied address keeps it. */
export function takeCode(): string | null {
  const match = /^#code=([^&]+)/.exec(location.hash);
  if (!match?.[1]) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(match[1]);
}

/** The token that an earlier code was exchanged for; null when this tab has none. */
export function storedToken(): string | null {
  return sessionStorage.getItem(key);
}

/** Forgets the token. */
export function forgetToken(): void {
  sessionStorage.removeItem(key);
}

/** Exchanges a one-time code for the page's token and keeps it for this tab. Returns false when the code is used up or unknown. */
export async function redeem(code: string): Promise<boolean> {
  const response = await fetch("/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (!response.ok) return false;
  const { token } = (await response.json()) as { token: string };
  sessionStorage.setItem(key, token);
  return true;
}

/** Opens the page's WebSocket; the token travels as a subprotocol because browsers allow no header there. */
export function dial(token: string): WebSocket {
  const address = new URL("/ws", location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(address, ["pollux.v1", `token.${token}`]);
}
