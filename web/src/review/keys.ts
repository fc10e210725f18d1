import { isMac } from "../ui/dom";

/** What the keys of a diff do. */
export interface DiffKeyActions {
  next(): void;
  previous(): void;
  keep?(): void;
  revert?(): void;
  accept?(): void;
}

/**
 * Gives an element the keys of a diff. They are heard before the editors inside, which bind some of them otherwise
 * (Ctrl-Enter inserts a line there).
 */
export function bindDiffKeys(element: HTMLElement, actions: DiffKeyActions): void {
  element.addEventListener(
    "keydown",
    (e) => {
      const run = actionOf(e, actions);
      if (!run || e.isComposing) return;
      e.preventDefault();
      e.stopPropagation();
      run();
    },
    true,
  );
}

function actionOf(e: KeyboardEvent, actions: DiffKeyActions): (() => void) | undefined {
  const mod = isMac ? e.metaKey : e.ctrlKey;
  if (e.key === "F8") return e.shiftKey ? actions.previous : actions.next;
  if (e.key === "Enter" && mod && !e.shiftKey && !e.altKey) return actions.accept;
  if (!e.altKey || e.ctrlKey !== (isMac && e.key === "Backspace") || e.metaKey || e.shiftKey) return undefined;
  switch (e.key) {
    case "ArrowDown":
      return actions.next;
    case "ArrowUp":
      return actions.previous;
    case "Enter":
      return actions.keep;
    case "Backspace":
      return actions.revert;
    default:
      return undefined;
  }
}
