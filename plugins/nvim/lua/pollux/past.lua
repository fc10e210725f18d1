-- What was proposed before, and the rules: lists to choose from.
local pollux = require('pollux')
local say = require('pollux.say')
local M = {}

local api = vim.api

-- Runs a command of the companion's; then_(result) follows where it succeeds.
local function ask(command, argument, then_)
  pollux.execute(command, argument, function(result, err)
    if err then
      return say.fail(err.message)
    end
    then_(result)
  end)
end

local function choose(items, prompt, none, label, then_)
  if #items == 0 then
    return say.say(none)
  end
  vim.ui.select(items, { prompt = prompt, format_item = label }, function(item)
    if item then
      then_(item)
    end
  end)
end

local function label(e)
  local what = { e.outcome }
  for word, is in pairs({ edited = e.edited, ['by a rule'] = e.policy, undone = e.undone }) do
    what[#what + 1] = is and word or nil
  end
  return ('%s  %s  %s  %s'):format((e.at or ''):sub(1, 16):gsub('T', ' '), vim.fn.fnamemodify(e.path, ':.'), table.concat(what, ', '), e.owner)
end

local function side(e, name, content)
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
  pcall(api.nvim_buf_set_name, 0, ('pollux://past/%s/%s (%s)'):format(e.id, vim.fn.fnamemodify(e.path, ':t'), name))
  require('pollux.text').fill(api.nvim_get_current_buf(), content)
  vim.bo.modifiable = false
  vim.b.pollux_past = e
  api.nvim_create_autocmd('BufWipeout', {
    buffer = api.nvim_get_current_buf(),
    callback = vim.schedule_wrap(require('pollux.diff').settled),
  })
  vim.wo.statusline = (' %s (%s) %%= %%l:%%c '):format(vim.fn.fnamemodify(e.path, ':t'):gsub('%%', '%%%%'), name)
  local language = require('pollux.view').syntax_of(e.path, api.nvim_get_current_buf())
  if language ~= '' then
    vim.bo.syntax = language
  end
  vim.cmd('diffthis')
end

-- Shows a past proposal in a tab page of its own.
local function show(e)
  ask('pollux.history', { id = e.id }, function(texts)
    vim.cmd('tabnew')
    side(e, 'before', texts.oldText)
    vim.cmd('rightbelow vnew')
    side(e, e.outcome, texts.finalText)
    require('pollux.tabs').name()
    say.say(e.undoable and not e.undone and ':Pollux undo takes this change back, :tabclose ends' or ':tabclose ends')
  end)
end

local function undo(e)
  ask('pollux.undo', { id = e.id }, function()
    require('pollux.reload').changed({ uris = { vim.uri_from_fname(e.path) } })
    say.say(vim.fn.fnamemodify(e.path, ':t') .. ' has its earlier text again')
  end)
end

--- Lists past proposals, and shows the one that is chosen.
function M.history()
  ask('pollux.history', nil, function(result)
    choose(result.entries, 'Past proposals', 'nothing was proposed here yet', label, show)
  end)
end

--- Takes back the change that is on show, else one from a list.
function M.undo()
  if vim.b.pollux_past then
    return undo(vim.b.pollux_past)
  end
  ask('pollux.history', nil, function(result)
    local entries = vim.tbl_filter(function(e)
      return e.undoable and not e.undone
    end, result.entries)
    choose(entries, 'Undo', 'there is nothing to undo', label, undo)
  end)
end

--- Lists the rules, the newest first, and changes the one that is chosen.
function M.rules()
  ask('pollux.status', nil, function(status)
    local rules = {}
    for _, rule in ipairs(status.rules) do
      table.insert(rules, 1, rule)
    end
    choose(rules, 'Rules', 'there is no rule: you are asked about everything', function(r)
      return ('%-8s  %s'):format(r.mode, r.pattern or r.owner or 'everything')
    end, function(r)
      choose({ 'ask', 'accept', 'terminal' }, r.pattern or r.owner or 'everything', '', tostring, function(policy)
        local scope = r.pattern and 'pattern' or r.owner and 'session' or nil
        ask('pollux.setPolicy', { policy = policy, scope = scope, pattern = r.pattern, session = r.owner }, function()
          say.say(('%s: %s'):format(policy, r.pattern or r.owner or 'everything'))
        end)
      end)
    end)
  end)
end

return M
