-- The two buffers of a diff: what keys, commands and writes do in them.
local config = require('pollux.config')
local say = require('pollux.say')
local text = require('pollux.text')
local view = require('pollux.view')
local M = {}

local api, uv = vim.api, vim.uv or vim.loop

-- What the keys of config.mappings() stand for.
local commands = {
  accept = '<Cmd>Pollux accept<CR>',
  reject = '<Cmd>Pollux reject<CR>',
  accept_all = '<Cmd>Pollux accept-all<CR>',
  next = '<Cmd>Pollux review next<CR>',
  keep = '<Cmd>Pollux keep<CR>',
  take = '<Cmd>Pollux take<CR>',
}

-- Writes the proposal as it is now into another file, which decides nothing.
local function copy(d, path, content)
  path = vim.fn.fnamemodify(path, ':p')
  if uv.fs_stat(path) and vim.v.cmdbang == 0 then
    return say.fail(path .. ' exists (add ! to write it)')
  end
  local ok, err = pcall(vim.fn.writefile, vim.split(content, '\n', { plain = true }), path, 'b')
  if not ok then
    return say.fail(tostring(err))
  end
  say.say(path .. ' holds a copy; the proposal still waits for your decision')
  vim.schedule(function() -- after :saveas
    if api.nvim_buf_is_valid(d.right) then
      pcall(api.nvim_buf_set_name, d.right, d.name)
    end
  end)
end

-- The keys of a side, and the commands that write: nothing is ever modified here, so that no autosave writes it.
local function keys(buf)
  for what, lhs in pairs(config.mappings()) do
    if commands[what] and lhs then
      api.nvim_buf_set_keymap(buf, 'n', lhs, commands[what], { noremap = true, silent = true })
    end
  end
  api.nvim_buf_call(buf, function()
    for short, long in pairs({ x = 'wq', xi = 'wq', xit = 'wq', exi = 'wq', exit = 'wq', up = 'w', update = 'w' }) do
      vim.cmd(([[cnoreabbrev <buffer> <expr> %s getcmdtype() ==# ':' && getcmdline() ==# '%s' ? '%s' : '%s']]):format(short, short, long, short))
    end
  end)
end

--- Makes both buffers of a diff. `on` is what happens in them: write(), content(), left(gone), again(buf), listen().
function M.make(d, on)
  d.left = view.scratch(d, 'before', d.old, 'nofile')
  vim.bo[d.left].modifiable = false
  d.right = view.scratch(d, 'proposal', d.new, 'acwrite')
  vim.bo[d.right].modifiable = not d.fixed
  d.name = api.nvim_buf_get_name(d.right)
  local language = view.syntax_of(d.path, d.right)
  local group = api.nvim_create_augroup('pollux_diff_' .. d.id, {})
  local function at(events, buf, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  at('BufWriteCmd', d.right, function(event)
    if not vim.startswith(event.match, 'pollux://') then
      copy(d, event.match, on.content())
    else
      on.write()
    end
  end)
  for _, buf in ipairs({ d.left, d.right }) do
    vim.b[buf].pollux_diff = d.id
    if language ~= '' then
      vim.bo[buf].syntax = language
    end
    at('BufReadCmd', buf, function()
      on.again(buf)
    end)
    at('QuitPre', buf, function()
      vim.bo[d.right].modified = false -- :q rejects whatever was edited
      if buf == d.left then
        on.left()
      end
    end)
    at('BufWipeout', buf, function()
      on.left()
    end)
    keys(buf)
  end
  at({ 'CursorMoved', 'CursorMovedI', 'TextChanged', 'TextChangedI' }, d.right, function()
    view.where(d)
  end)
  api.nvim_create_autocmd('WinClosed', {
    group = group,
    callback = function(event)
      if d.win and tonumber(event.match) == d.win and d.tab then
        on.left(function()
          return #vim.fn.win_findbuf(d.right) == 0
        end)
      end
    end,
  })
  api.nvim_create_autocmd({ 'VimResized', 'TabEnter' }, {
    group = group,
    callback = function()
      if d.tab == api.nvim_get_current_tabpage() then
        view.resize(d)
      end
    end,
  })
  on.listen()
end

--- Shows a side as it was proposed, for :edit!
function M.again(d, buf)
  text.fill(buf, buf == d.right and d.new or d.old)
  vim.bo[buf].modifiable = buf == d.right and not d.fixed
end

return M
