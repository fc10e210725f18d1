import type { Socket } from "./connection";

/** The part of a WebSocket that a proof uses. */
export type Wire = Socket;

/** What a proof needs and tells. */
export interface ProofOptions {
  /** The one-time code of an address, or the key that was given for one: 32 bytes in base64url. It never travels. */
  secret: string;
  /** Where this page is, as `http://127.0.0.1:PORT`. */
  origin: string;
  /** Gets the key that is good from now on. */
  proved: (key: string) => void;
  /** What listens does not know the secret. */
  impostor: () => void;
}

const protocol = "pollux.v2";

function decode(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** HMAC-SHA256 by the secret over lines of text. */
async function mac(secret: string, ...lines: string[]): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", decode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(lines.join("\n"))));
}

/**
 * A WebSocket that opens only when both sides have proved that they know the secret: HMACs over both nonces, the role and the
 * origin, so that a listener that took over the port hears nothing that it could use, nor could it pass anything on to a
 * companion elsewhere. Until then nothing else is sent; an impostor looks like a lost connection.
 */
export class ProvenSocket implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((e: { data: unknown }) => void) | null = null;
  onclose: ((e: { code: number; reason: string }) => void) | null = null;
  private readonly nonce = encode(crypto.getRandomValues(new Uint8Array(32)));
  private step: (message: Record<string, unknown>) => Promise<void> = (m) => this.answered(m);
  private proven = false;
  /** What was heard, one after the other. */
  private turn: Promise<void> = Promise.resolve();
  private theirs = "";
  /** The companion has proved itself: what it gives as a reason may be shown. */
  private known = false;

  constructor(
    private readonly wire: Wire,
    private readonly options: ProofOptions,
  ) {
    wire.onopen = () => this.inTurn(async () => this.say({ id: encode(await mac(options.secret, protocol, "id")), nonce: this.nonce }));
    wire.onmessage = (e) => {
      if (this.proven) this.onmessage?.(e);
      else this.inTurn(() => this.heard(e.data));
    };
    wire.onclose = (e) => this.onclose?.({ code: e.code, reason: this.known ? e.reason : "" });
  }

  send(data: string): void {
    if (this.proven) this.wire.send(data);
  }

  close(code?: number): void {
    this.wire.close(code);
  }

  private inTurn(run: () => Promise<void>): void {
    this.turn = this.turn.then(run).catch(() => this.refuse());
  }

  /** What came while the last step was computed may be the first message of the conversation. */
  private heard(data: unknown): Promise<void> {
    if (this.proven) return Promise.resolve(this.onmessage?.({ data }));
    return this.step(JSON.parse(String(data)) as Record<string, unknown>);
  }

  private say(message: Record<string, string>): void {
    this.wire.send(JSON.stringify(message));
  }

  private mac(role: string): Promise<Uint8Array> {
    return mac(this.options.secret, protocol, role, this.options.origin, this.nonce, this.theirs);
  }

  /** The companion's proof, and then this page's. */
  private async answered(m: Record<string, unknown>): Promise<void> {
    this.theirs = String(m["nonce"]);
    if (m["proof"] !== encode(await this.mac("companion"))) return this.refuse();
    this.known = true;
    this.step = (next) => this.welcomed(next);
    this.say({ proof: encode(await this.mac("page")) });
  }

  /** The newest key, under a mask that only the two sides know. */
  private async welcomed(m: Record<string, unknown>): Promise<void> {
    const mask = await this.mac("key");
    const sealed = decode(String(m["key"]));
    if (sealed.length !== mask.length) return this.refuse();
    this.options.proved(encode(sealed.map((b, i) => b ^ (mask[i] as number))));
    this.proven = true;
    this.onopen?.();
  }

  private refuse(): void {
    this.options.impostor();
    this.wire.onopen = this.wire.onmessage = this.wire.onclose = null;
    this.wire.close();
    this.onclose?.({ code: 1006, reason: "" });
  }
}
