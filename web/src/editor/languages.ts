import { LanguageSupport, StreamLanguage, type StreamParser } from "@codemirror/language";
import { baseName } from "../core/paths";

/** A language that the editor knows: its name for the status bar and how to load it. */
export interface Language {
  name: string;
  load: () => Promise<LanguageSupport>;
}

const legacy = (parser: Promise<StreamParser<unknown>>) => parser.then((p) => new LanguageSupport(StreamLanguage.define(p)));

// Every import is a file of its own in the build, fetched when a document first needs it.
const js = (config: { typescript?: boolean; jsx?: boolean }) => () => import("@codemirror/lang-javascript").then((m) => m.javascript(config));
const clike = (pick: (m: typeof import("@codemirror/legacy-modes/mode/clike")) => StreamParser<unknown>) => () =>
  legacy(import("@codemirror/legacy-modes/mode/clike").then(pick));

const languages: Record<string, Language> = {
  javascript: { name: "JavaScript", load: js({ jsx: true }) },
  typescript: { name: "TypeScript", load: js({ typescript: true }) },
  tsx: { name: "TypeScript JSX", load: js({ typescript: true, jsx: true }) },
  python: { name: "Python", load: () => import("@codemirror/lang-python").then((m) => m.python()) },
  go: { name: "Go", load: () => import("@codemirror/lang-go").then((m) => m.go()) },
  rust: { name: "Rust", load: () => import("@codemirror/lang-rust").then((m) => m.rust()) },
  cpp: { name: "C++", load: () => import("@codemirror/lang-cpp").then((m) => m.cpp()) },
  java: { name: "Java", load: () => import("@codemirror/lang-java").then((m) => m.java()) },
  json: { name: "JSON", load: () => import("@codemirror/lang-json").then((m) => m.json()) },
  html: { name: "HTML", load: () => import("@codemirror/lang-html").then((m) => m.html()) },
  css: { name: "CSS", load: () => import("@codemirror/lang-css").then((m) => m.css()) },
  markdown: { name: "Markdown", load: () => import("@codemirror/lang-markdown").then((m) => m.markdown()) },
  yaml: { name: "YAML", load: () => import("@codemirror/lang-yaml").then((m) => m.yaml()) },
  xml: { name: "XML", load: () => import("@codemirror/lang-xml").then((m) => m.xml()) },
  sql: { name: "SQL", load: () => import("@codemirror/lang-sql").then((m) => m.sql()) },
  php: { name: "PHP", load: () => import("@codemirror/lang-php").then((m) => m.php()) },
  shell: { name: "Shell", load: () => legacy(import("@codemirror/legacy-modes/mode/shell").then((m) => m.shell)) },
  powershell: { name: "PowerShell", load: () => legacy(import("@codemirror/legacy-modes/mode/powershell").then((m) => m.powerShell)) },
  toml: { name: "TOML", load: () => legacy(import("@codemirror/legacy-modes/mode/toml").then((m) => m.toml)) },
  ini: { name: "Properties", load: () => legacy(import("@codemirror/legacy-modes/mode/properties").then((m) => m.properties)) },
  dockerfile: { name: "Dockerfile", load: () => legacy(import("@codemirror/legacy-modes/mode/dockerfile").then((m) => m.dockerFile)) },
  ruby: { name: "Ruby", load: () => legacy(import("@codemirror/legacy-modes/mode/ruby").then((m) => m.ruby)) },
  lua: { name: "Lua", load: () => legacy(import("@codemirror/legacy-modes/mode/lua").then((m) => m.lua)) },
  perl: { name: "Perl", load: () => legacy(import("@codemirror/legacy-modes/mode/perl").then((m) => m.perl)) },
  swift: { name: "Swift", load: () => legacy(import("@codemirror/legacy-modes/mode/swift").then((m) => m.swift)) },
  diff: { name: "Diff", load: () => legacy(import("@codemirror/legacy-modes/mode/diff").then((m) => m.diff)) },
  protobuf: { name: "Protocol Buffers", load: () => legacy(import("@codemirror/legacy-modes/mode/protobuf").then((m) => m.protobuf)) },
  csharp: { name: "C#", load: clike((m) => m.csharp) },
  kotlin: { name: "Kotlin", load: clike((m) => m.kotlin) },
  scala: { name: "Scala", load: clike((m) => m.scala) },
  dart: { name: "Dart", load: clike((m) => m.dart) },
};

const extensions: Record<string, string> = {
  javascript: "js mjs cjs jsx",
  typescript: "ts mts cts",
  tsx: "tsx",
  python: "py pyi pyw",
  go: "go",
  rust: "rs",
  cpp: "c h cc cpp cxx hh hpp hxx ino m mm",
  java: "java",
  json: "json jsonc json5 webmanifest map ipynb",
  html: "html htm xhtml vue svelte astro",
  css: "css scss less",
  markdown: "md markdown mdx",
  yaml: "yaml yml",
  xml: "xml svg xsd xsl plist csproj props targets",
  sql: "sql",
  php: "php phtml",
  shell: "sh bash zsh fish ksh",
  powershell: "ps1 psm1 psd1",
  toml: "toml",
  ini: "ini properties cfg conf env editorconfig",
  ruby: "rb rake gemspec",
  lua: "lua",
  perl: "pl pm t",
  swift: "swift",
  diff: "diff patch",
  protobuf: "proto",
  csharp: "cs",
  kotlin: "kt kts",
  scala: "scala sc",
  dart: "dart",
};

const fileNames: Record<string, string> = {
  dockerfile: "dockerfile",
  containerfile: "dockerfile",
  gemfile: "ruby",
  rakefile: "ruby",
  ".bashrc": "shell",
  ".profile": "shell",
  ".zshrc": "shell",
  "go.mod": "go",
  "cargo.lock": "toml",
  ".gitconfig": "ini",
  ".editorconfig": "ini",
  ".env": "ini",
};

const byExtension = new Map(Object.entries(extensions).flatMap(([id, list]) => list.split(" ").map((ext) => [ext, id] as const)));

/** The language of a file by its name, or null for plain text. */
export function languageOf(path: string): Language | null {
  const name = baseName(path).toLowerCase();
  const id = fileNames[name] ?? byExtension.get(name.slice(name.lastIndexOf(".") + 1)) ?? null;
  return id ? (languages[id] ?? null) : null;
}
