import { throttle, type Clock } from "../core/throttle";
import type { Connection } from "../net/connection";
import type { ContextReport } from "../net/protocol";

/** Tells the companion what this page shows: 50 ms after a change, at once when the page gains or loses the focus (SPEC C-2). */
export class ContextReporter {
  private last = "";
  private readonly soon;

  constructor(
    private readonly connection: Connection,
    private readonly collect: () => ContextReport,
    clock?: Clock,
  ) {
    this.soon = throttle(() => this.send(), 50, clock);
  }

  /** Something may have changed. */
  touch(): void {
    this.soon();
  }

  /** The focus changed: what waits is overtaken. */
  now(): void {
    this.soon.cancel();
    this.send();
  }

  /** There is a new connection, which knows nothing yet. */
  repeat(): void {
    this.last = "";
    this.now();
  }

  private send(): void {
    const report = this.collect();
    const key = JSON.stringify(report);
    if (key === this.last) return;
    if (this.connection.notify("context/update", report)) this.last = key;
  }
}
