-- :Pollux send: points an agent at a file, lines, a folder or a problem.
local pollux = require('pollux')
local say = require('pollux.say')
local M = {}

local api = vim.api

-- The terminals of this Neovim that run, with their channels.
local function terminals()
  return vim.tbl_filter(
    function(t)
      return t.channel > 0 and vim.fn.jobwait({ t.channel }, 0)[1] == -1
    end,
    vim.tbl_map(function(buf)
      return { buf = buf, channel = vim.bo[buf].buftype == 'terminal' and vim.bo[buf].channel or 0 }
    end, api.nvim_list_bufs())
  )
end

-- The terminal that the CLI runs in, that of :Pollux run first.
local function of_cli()
  local found
  for _, t in ipairs(terminals()) do
    if vim.b[t.buf].pollux_cli then
      return t
    end
    found = found or require('pollux.context').is_cli(t.buf) and t or nil
  end
  return found
end

--- Types what an agent's prompt should hold where that agent runs in a terminal of this Neovim.
function M.type_text(p, reply)
  for _, t in ipairs(terminals()) do
    if vim.b[t.buf].terminal_job_pid == p.processId then
      return reply({ typed = vim.fn.chansend(t.channel, tostring(p.text)) > 0 })
    end
  end
  reply({ typed = false })
end

-- What the line under the cursor stands for in a tree of files, by the one call that each offers.
local trees = {
  NvimTree = function()
    return require('nvim-tree.api').tree.get_node_under_cursor().absolute_path
  end,
  ['neo-tree'] = function()
    return require('neo-tree.sources.manager').get_state_for_window().tree:get_node().path
  end,
  oil = function()
    return require('oil').get_current_dir() .. require('oil').get_cursor_entry().name
  end,
  minifiles = function()
    return require('mini.files').get_fs_entry().path
  end,
  netrw = function()
    return vim.fn['netrw#Call']('NetrwFile', vim.fn['netrw#Call']('NetrwGetWord'))
  end,
}

-- The file that is meant by "this one", or a folder.
local function this(buf)
  local tree = trees[vim.bo[buf].filetype]
  if not tree then
    return require('pollux.context').file(buf)
  end
  local ok, path = pcall(tree)
  return ok and type(path) == 'string' and path ~= '' and vim.fn.fnamemodify(path, ':p') or nil
end

-- Points an agent at m: that of a session, or that in a terminal of this Neovim.
local function tell(m, to)
  local argument = { uri = vim.uri_from_fname(m.path), first = m.first or 0, last = m.last or 0, words = m.words }
  argument.session, argument.processId = to.id, to.buf and vim.b[to.buf].terminal_job_pid
  pollux.execute('pollux.mention', argument, function(done, err)
    if err then
      return say.fail(err.message)
    end
    say.say(('%s: press Enter there (%s)'):format(done.session, done.by == 'protocol' and 'by its protocol' or 'typed by ' .. done.by))
  end)
end

-- Points the agent at m: that of :Pollux run, else the connected one, asking which where there are several.
local function send(m)
  local sessions, own = pollux.state().sessions, of_cli()
  if own or #sessions == 1 then
    return tell(m, own or sessions[1])
  elseif #sessions == 0 then
    return say.fail('no CLI runs here; start one with :Pollux run')
  end
  vim.ui.select(sessions, {
    prompt = 'mention it to',
    format_item = function(s)
      return s.name
    end,
  }, function(s)
    if s then
      tell(m, s)
    end
  end)
end

local function one_line(text)
  return vim.trim((text:gsub('[%c%s]+', ' ')))
end

--- Mentions this file, or the range's lines, with words behind it.
function M.send(words, command)
  local path = this(api.nvim_get_current_buf())
  if not path then
    return say.fail('this buffer is no file on disk')
  end
  local m = { path = path, words = #words > 0 and one_line(table.concat(words, ' ')) or nil }
  if command.range > 0 then
    m.first, m.last = command.line1, command.line2
  end
  send(m)
end

--- Mentions the lines of the problem under the cursor, with what it says.
function M.problem(words)
  local path, row = this(api.nvim_get_current_buf()), api.nvim_win_get_cursor(0)[1]
  local found = path and vim.diagnostic.get(0, { lnum = row - 1 })[1]
  if not found then
    return say.fail('there is no problem in this line')
  end
  local said = one_line(('%s: %s'):format((vim.diagnostic.severity[found.severity] or 'problem'):lower(), found.message))
  if #words > 0 then
    said = said .. ' – ' .. one_line(table.concat(words, ' '))
  end
  send({ path = path, first = found.lnum + 1, last = (found.end_lnum or found.lnum) + 1, words = said })
end

return M
