import type { Clock } from "../src/core/throttle";
import type { Socket } from "../src/net/connection";

/** A clock that moves only when told; times in milliseconds. */
export class FakeClock implements Clock {
  private time = 0;
  private nextId = 1;
  private readonly timers = new Map<number, { at: number; f: () => void }>();

  now(): number {
    return this.time;
  }

  setTimeout(f: () => void, ms: number): number {
    const id = this.nextId++;
    this.timers.set(id, { at: this.time + ms, f });
    return id;
  }

  clearTimeout(id: number): void {
    this.timers.delete(id);
  }

  /** Lets time pass: due timers run in order, and promises settle after each. */
  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (;;) {
      const due = [...this.timers].filter(([, t]) => t.at <= end).sort(([, s], [, t]) => s.at - t.at)[0];
      if (!due) break;
      this.time = due[1].at;
      this.timers.delete(due[0]);
      due[1].f();
      await settle();
    }
    this.time = end;
  }
}

/** Lets every promise that can settle do so. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** A socket whose other end the test holds. */
export class FakeSocket implements Socket {
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  closed = false;
  readonly sent: { id?: number; method?: string; params?: unknown; result?: unknown; error?: { code: number } }[] = [];
  /** Answers requests of these methods at once. */
  answers: Record<string, unknown> = { hello: {}, ping: {} };

  send(data: string): void {
    const message = JSON.parse(data) as FakeSocket["sent"][number];
    this.sent.push(message);
    if (message.method && message.id !== undefined && message.method in this.answers) this.push({ id: message.id, result: this.answers[message.method] });
  }

  close(): void {
    this.closed = true;
  }

  push(message: object): void {
    queueMicrotask(() => this.onmessage?.({ data: JSON.stringify({ jsonrpc: "2.0", ...message }) }));
  }
}
