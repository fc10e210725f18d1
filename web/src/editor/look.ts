import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags as t } from "@lezer/highlight";

// Colours are custom properties of the page's style sheet, so that one theme serves light and dark.
const highlight = HighlightStyle.define([
  { tag: [t.keyword, t.modifier, t.controlKeyword, t.operatorKeyword, t.moduleKeyword], color: "var(--syn-keyword)" },
  { tag: [t.string, t.special(t.string), t.regexp, t.character], color: "var(--syn-string)" },
  { tag: [t.number, t.bool, t.null, t.atom, t.unit], color: "var(--syn-number)" },
  { tag: [t.comment, t.docComment], color: "var(--syn-comment)", fontStyle: "italic" },
  { tag: [t.function(t.variableName), t.function(t.propertyName), t.labelName], color: "var(--syn-function)" },
  { tag: [t.definition(t.variableName), t.definition(t.propertyName)], color: "var(--syn-definition)" },
  { tag: [t.typeName, t.className, t.namespace, t.tagName, t.standard(t.typeName)], color: "var(--syn-type)" },
  { tag: [t.propertyName, t.attributeName], color: "var(--syn-property)" },
  { tag: [t.meta, t.processingInstruction, t.annotation, t.macroName], color: "var(--syn-meta)" },
  { tag: [t.operator, t.punctuation, t.separator, t.bracket], color: "var(--syn-punctuation)" },
  { tag: [t.heading], color: "var(--syn-keyword)", fontWeight: "600" },
  { tag: [t.link, t.url], color: "var(--syn-function)", textDecoration: "underline" },
  { tag: [t.emphasis], fontStyle: "italic" },
  { tag: [t.strong], fontWeight: "600" },
  { tag: [t.strikethrough], textDecoration: "line-through" },
  { tag: [t.deleted], color: "var(--removed-ink)" },
  { tag: [t.inserted], color: "var(--added-ink)" },
  { tag: [t.invalid], color: "var(--danger)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--surface)", fontSize: "var(--code-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--caret)", padding: "6px 0 40vh" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--caret)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "var(--selection)",
  },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-3)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 14px", minWidth: "36px" },
  ".cm-activeLine": { backgroundColor: "var(--active-line)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--active-line)", color: "var(--ink)" },
  ".cm-foldGutter .cm-gutterElement": { color: "var(--ink-3)", width: "14px" },
  ".cm-foldPlaceholder": { background: "var(--chip)", border: "none", color: "var(--ink-2)", padding: "0 6px" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--match)", outline: "1px solid var(--match-line)" },
  ".cm-selectionMatch": { backgroundColor: "var(--match)" },
  ".cm-searchMatch": { backgroundColor: "var(--find)", outline: "1px solid var(--find-line)" },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: "var(--find-now)" },
  ".cm-panels": { backgroundColor: "var(--chrome)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", overflow: "hidden" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--focus)", color: "var(--on-focus)" },
  // The diff. Both sides carry their hue; what changed within a line is stronger than the line.
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--removed-line)" },
  "&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "var(--added-line)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "var(--removed-text)", borderRadius: "2px" },
  "&.cm-merge-b .cm-changedText": { background: "var(--added-text)", borderRadius: "2px" },
  "&.cm-merge-a .cm-wholeBlock .cm-changedText, &.cm-merge-b .cm-wholeBlock .cm-changedText": { background: "none" },
  ".cm-changeGutter": { width: "4px", paddingLeft: "0" },
  "&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter": { background: "var(--removed-mark)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--added-mark)" },
  ".cm-collapsedLines": { background: "var(--chrome)", color: "var(--ink-2)", fontFamily: "var(--sans)", padding: "3px 12px", cursor: "pointer" },
  ".cm-collapsedLines:before": { content: '"⋯"', marginInlineEnd: "8px" },
  ".cm-collapsedLines:after": { content: "none" },
  ".cm-insertedLine, .cm-deletedLine, .cm-deletedLine del": { textDecoration: "none" },
});

/** The page's look for every editor: colours by custom properties and syntax highlighting. */
export const look: Extension = [theme, syntaxHighlighting(highlight)];
