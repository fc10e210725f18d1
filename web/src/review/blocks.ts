import { getChunks, type Chunk } from "@codemirror/merge";
import { RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, type DecorationSet, type ViewUpdate } from "@codemirror/view";

const whole = Decoration.line({ class: "cm-wholeBlock" });

/** Whether all of a chunk is new, gone or replaced, so that marking the words in it would say nothing. */
function isWhole(chunk: Chunk): boolean {
  const lengthA = Math.max(0, chunk.toA - 1 - chunk.fromA);
  const lengthB = Math.max(0, chunk.toB - 1 - chunk.fromB);
  if (chunk.fromA === chunk.toA || chunk.fromB === chunk.toB) return true;
  const [only] = chunk.changes;
  return chunk.changes.length === 1 && only !== undefined && only.fromA === 0 && only.fromB === 0 && only.toA >= lengthA && only.toB >= lengthB;
}

function decorate(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const info = getChunks(view.state);
  const { doc } = view.state;
  const isA = info?.side === "a";
  for (const chunk of info?.chunks ?? []) {
    const from = isA ? chunk.fromA : chunk.fromB;
    const to = Math.min(isA ? chunk.toA : chunk.toB, doc.length + 1);
    if (to <= view.viewport.from || !isWhole(chunk)) continue;
    if (from > view.viewport.to) break;
    let at = Math.max(from, doc.lineAt(view.viewport.from).from);
    while (at < to && at <= view.viewport.to) {
      const line = doc.lineAt(at);
      builder.add(line.from, line.from, whole);
      at = line.to + 1;
    }
  }
  return builder.finish();
}

/** Marks the lines of chunks that changed as a whole, for the style sheet to leave their words alone. */
export const wholeBlocks = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor(view: EditorView) {
      this.decorations = decorate(view);
    }

    update(u: ViewUpdate): void {
      if (u.docChanged || u.viewportChanged || getChunks(u.startState)?.chunks !== getChunks(u.state)?.chunks) this.decorations = decorate(u.view);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);
