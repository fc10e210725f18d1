import { browserClock, type Clock } from "../core/throttle";
import { Signal } from "../core/signal";
import { Code, RpcError, type Incoming, type Outgoing, type Requests } from "./protocol";

/** The part of a WebSocket that a connection uses. */
export interface Socket {
  onopen: (() => void) | null;
  onmessage: ((e: { data: unknown }) => void) | null;
  onclose: ((e: { code: number; reason: string }) => void) | null;
  send(data: string): void;
  close(code?: number): void;
}

/**
 * `connecting`: the first attempt runs; `open`: greeted, requests work; `lost`: it was or could not be open and is tried
 * again; `denied`: the companion does not know this page's secret, trying again is pointless.
 */
export type ConnectionState = "connecting" | "open" | "lost" | "denied";

/** What a connection needs. */
export interface ConnectionOptions {
  /** Opens a new socket. */
  dial: () => Socket;
  /** Runs after each opening, before the state becomes `open`; a failure counts as a lost connection. */
  greet: () => Promise<void>;
  /** Answers a request of the companion's. */
  answer?: (method: string, params: unknown) => Promise<unknown>;
  clock?: Clock;
}

interface Pending {
  resolve: (value: unknown) => void;
  reject: (e: RpcError) => void;
}

interface Message {
  id?: number | string | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/** Back-off between attempts, ping interval and how long its answer may take; all in milliseconds. */
export const timing = { firstRetry: 250, maxRetry: 5000, ping: 10_000, pong: 5000, dial: 8000 } as const;

/** The close code by which the companion refuses a secret. */
const deniedCode = 4401;

/** The companion knows the page's secret and does not let it in; the reason is for the user. */
const barredCode = 4403;

const offline = () => new RpcError(Code.offline, "The companion cannot be reached at the moment.");

/**
 * One page's line to its companion, for the page's whole life: it greets, pings, notices silence, and dials again
 * with a growing pause. Requests fail at once while it is not open; nothing is queued here, because what has to
 * survive a gap (edits, context) is repeated from its own state after the greeting.
 */
export class Connection {
  /** The state, after each change of it. */
  readonly changed = new Signal<ConnectionState>();
  private readonly heard = new Map<string, Signal<unknown>>();
  private readonly clock: Clock;
  private readonly pending = new Map<number, Pending>();
  private socket: Socket | null = null;
  private current: ConnectionState = "connecting";
  private nextId = 1;
  private retryDelay: number = timing.firstRetry;
  private retryTimer: number | null = null;
  private watchTimer: number | null = null;

  constructor(private readonly options: ConnectionOptions) {
    this.clock = options.clock ?? browserClock;
  }

  /** The state now. */
  get state(): ConnectionState {
    return this.current;
  }

  /** Why the companion does not let this page in, when it is `denied`; "" when it does not know its secret. */
  barred = "";

  /** Dials now, also in the middle of a pause between attempts. */
  connect(): void {
    if (this.socket) return;
    this.clear();
    if (this.current === "denied") this.setState("connecting");
    const socket = this.options.dial();
    this.socket = socket;
    this.watchTimer = this.clock.setTimeout(() => this.drop(socket), timing.dial);
    socket.onopen = () => void this.greet(socket);
    socket.onmessage = (e) => this.receive(socket, e.data);
    socket.onclose = (e) => this.closed(socket, e.code, e.reason);
  }

  /** Asks the companion; rejects with an RpcError, of code `offline` when there is no connection or it breaks meanwhile. */
  request<M extends keyof Requests>(method: M, params: Requests[M][0]): Promise<Requests[M][1]> {
    const socket = this.socket;
    if (!socket || (this.current !== "open" && method !== "hello")) return Promise.reject(offline());
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve: (value) => resolve(value as Requests[M][1]), reject });
      this.send(socket, { id, method, params });
    });
  }

  /** Tells the companion; false when there is no connection to tell it on. */
  notify<M extends keyof Outgoing>(method: M, params: Outgoing[M]): boolean {
    if (!this.socket || this.current !== "open") return false;
    this.send(this.socket, { method, params });
    return true;
  }

  /** Listens for one kind of notification. */
  on<M extends keyof Incoming>(method: M, listener: (params: Incoming[M]) => void): void {
    let signal = this.heard.get(method);
    if (!signal) this.heard.set(method, (signal = new Signal<unknown>()));
    signal.on((params) => listener(params as Incoming[M]));
  }

  private async greet(socket: Socket): Promise<void> {
    try {
      await this.options.greet();
    } catch {
      this.drop(socket);
      return;
    }
    if (socket !== this.socket) return;
    this.retryDelay = timing.firstRetry;
    this.clear();
    this.setState("open");
    this.ping(socket);
  }

  /** Pings after a pause; the answer starts the next round, silence ends the connection. */
  private ping(socket: Socket): void {
    this.watchTimer = this.clock.setTimeout(() => {
      if (socket !== this.socket) return;
      this.watchTimer = this.clock.setTimeout(() => this.drop(socket), timing.pong);
      this.request("ping", {}).then(
        () => {
          if (socket !== this.socket) return;
          this.clear();
          this.ping(socket);
        },
        () => undefined,
      );
    }, timing.ping);
  }

  private receive(socket: Socket, data: unknown): void {
    if (socket !== this.socket || typeof data !== "string") return;
    let message: Message;
    try {
      message = JSON.parse(data) as Message;
    } catch {
      return;
    }
    if (message.method !== undefined) {
      if (message.id === undefined || message.id === null) this.heard.get(message.method)?.emit(message.params);
      else void this.answer(socket, message.id, message.method, message.params);
      return;
    }
    const pending = typeof message.id === "number" ? this.pending.get(message.id) : undefined;
    if (!pending) return;
    this.pending.delete(message.id as number);
    const { error } = message;
    if (error) pending.reject(new RpcError(error.code, error.message, error.data));
    else pending.resolve(message.result ?? {});
  }

  private async answer(socket: Socket, id: number | string, method: string, params: unknown): Promise<void> {
    try {
      if (!this.options.answer) throw new RpcError(Code.methodNotFound, `unknown method ${method}`);
      this.send(socket, { id, result: await this.options.answer(method, params) });
    } catch (e) {
      const error = e instanceof RpcError ? e : new RpcError(-32603, String(e));
      this.send(socket, { id, error: { code: error.code, message: error.message } });
    }
  }

  private send(socket: Socket, message: Message): void {
    if (socket === this.socket) socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  /** Gives a socket up without waiting for its closing handshake, which a dead peer would never finish. */
  private drop(socket: Socket): void {
    if (socket !== this.socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.closed(socket, 1006);
  }

  private closed(socket: Socket, code: number, reason = ""): void {
    if (socket !== this.socket) return;
    this.socket = null;
    this.clear();
    const waiting = [...this.pending.values()];
    this.pending.clear();
    if (code === deniedCode || code === barredCode) {
      this.barred = code === barredCode ? reason : "";
      this.setState("denied");
    } else {
      this.setState("lost");
      this.retryTimer = this.clock.setTimeout(() => this.connect(), this.retryDelay);
      this.retryDelay = Math.min(this.retryDelay * 2, timing.maxRetry);
    }
    for (const p of waiting) p.reject(offline());
  }

  private clear(): void {
    if (this.watchTimer !== null) this.clock.clearTimeout(this.watchTimer);
    if (this.retryTimer !== null) this.clock.clearTimeout(this.retryTimer);
    this.watchTimer = this.retryTimer = null;
  }

  private setState(state: ConnectionState): void {
    if (state === this.current) return;
    this.current = state;
    this.changed.emit(state);
  }
}
