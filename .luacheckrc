-- Neovim's plugin is what is Lua here: LuaJIT, and the editor's own table.
std = 'luajit'
read_globals = { vim = { other_fields = true, fields = { b = { read_only = false, other_fields = true }, bo = { read_only = false, other_fields = true },
  env = { read_only = false, other_fields = true }, g = { read_only = false, other_fields = true }, o = { read_only = false, other_fields = true },
  wo = { read_only = false, other_fields = true } } } }
max_line_length = 180
-- micro calls a plugin's global functions by their names, and its files share them.
files['plugins/micro'] = { std = 'lua51', read_globals = { 'import', 'installed' },
  globals = { 'VERSION', 'json', 'diffs', 'findings', 'past', 'link', 'status', 'init', 'preinit', 'deinit', 'onBufPaneOpen', 'onBufferOpen', 'onSave', 'preSave', 'preSaveAs', 'preQuit', 'preForceQuit', 'preQuitAll' } }
