/** A list of listeners for one kind of event; listeners are called in the order in which they came. */
export class Signal<T = void> {
  private readonly listeners = new Set<(value: T) => void>();

  /** Adds a listener and returns the function that removes it. */
  on(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls every listener; one that was added meanwhile is not called for this value. */
  emit(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
}
