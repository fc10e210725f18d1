// JSON-RPC 2.0 with a child process, one message a line.
import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";

export type Params = Record<string, any>;

/** An error that the other side of the pipe gets, or that it has answered. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Handlers {
  /** Answers a request. waited() tells whether pollux still waits for the answer. */
  request(method: string, params: Params, waited: () => boolean): Promise<unknown>;
  notification(method: string, params: Params): void;
  /** A line of the companion's standard error. */
  log(line: string): void;
  /** Called once. missing tells that the program could not be started at all. */
  ended(reason: string, missing: boolean): void;
}

interface Call {
  resolve(result: any): void;
  reject(err: Error): void;
}

/** The companion process of one start. */
export class Peer {
  private readonly child: ChildProcess;
  private readonly calls = new Map<number, Call>();
  private readonly waiting = new Set<unknown>();
  private count = 0;
  private over = false;

  constructor(
    command: string,
    args: string[],
    private readonly on: Handlers,
  ) {
    this.child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.child.on("error", (err: NodeJS.ErrnoException) => this.end(err.message, err.code === "ENOENT" || err.code === "EACCES"));
    this.child.on("exit", (code, signal) => this.end(signal ?? `exit code ${code}`, false));
    this.child.stdin?.on("error", () => {}); // it has ended: "exit" says so
    lines(this.child.stdout, (line) => this.receive(line));
    lines(this.child.stderr, (line) => on.log(line));
  }

  notify(method: string, params: unknown): void {
    this.send({ jsonrpc: "2.0", method, params });
  }

  /** Rejects with what pollux has answered, or when the process ends first. */
  call(method: string, params: unknown): Promise<any> {
    if (this.over) return Promise.reject(new Error("the companion has ended"));
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Ends the process, for one that does not end by itself. */
  kill(): void {
    this.child.kill();
  }

  private send(message: unknown): void {
    if (!this.over) this.child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  private end(reason: string, missing: boolean): void {
    if (this.over) return;
    this.over = true;
    this.waiting.clear();
    for (const call of this.calls.values()) call.reject(new Error("the companion has ended"));
    this.calls.clear();
    this.on.ended(reason, missing);
  }

  private receive(line: string): void {
    let m: any;
    try {
      m = JSON.parse(line);
    } catch {
      return;
    }
    if (typeof m !== "object" || m === null) return;
    if (typeof m.method === "string" && m.id !== undefined) {
      void this.answer(m);
    } else if (m.method === "$/cancelRequest") {
      this.waiting.delete(m.params?.id);
    } else if (typeof m.method === "string") {
      this.on.notification(m.method, m.params ?? {});
    } else if (typeof m.id === "number") {
      const call = this.calls.get(m.id);
      this.calls.delete(m.id);
      if (m.error) call?.reject(new RpcError(m.error.code, String(m.error.message)));
      else call?.resolve(m.result);
    }
  }

  private async answer(m: any): Promise<void> {
    this.waiting.add(m.id);
    try {
      const result = await this.on.request(m.method, m.params ?? {}, () => this.waiting.has(m.id));
      this.send({ jsonrpc: "2.0", id: m.id, result: result ?? null });
    } catch (err) {
      const code = err instanceof RpcError ? err.code : -32603;
      this.send({ jsonrpc: "2.0", id: m.id, error: { code, message: err instanceof Error ? err.message : String(err) } });
    } finally {
      this.waiting.delete(m.id);
    }
  }
}

/** Calls each with every whole line of a stream. A line may come in many pieces. */
function lines(stream: NodeJS.ReadableStream | null, each: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let parts: string[] = [];
  stream?.on("data", (data: Buffer) => {
    const pieces = decoder.write(data).split("\n");
    for (const [i, piece] of pieces.entries()) {
      parts.push(piece);
      if (i === pieces.length - 1) break;
      const line = parts.join("");
      parts = [];
      if (line.trim() !== "") each(line);
    }
  });
}

/** Starts a process that lives on, makes calls whose answers nobody hears, and ends its input. Returns when it has them, or cannot be started. */
export function tell(command: string, args: string[], calls: readonly (readonly [method: string, params: unknown])[]): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["pipe", "ignore", "ignore"], detached: true, windowsHide: true });
    child.on("error", () => resolve());
    child.stdin.on("error", () => resolve()); // it has ended
    child.stdin.end(calls.map(([method, params], id) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`).join(""), () => resolve());
    child.unref();
  });
}
