# pollux for Kakoune: an agent knows what you look at, and its changes come as buffers that you edit, accept or reject.
# Each command of its starts with pollux-, and its help says what it does.

declare-option -docstring 'the program that serves this editor' str pollux_command pollux
declare-option -docstring 'what pollux says for the mode line' str pollux_status
declare-option -docstring 'start pollux with Kakoune' bool pollux_autostart true

# What speaks the editor's protocol in place of pollux: pollux conform.
declare-option -hidden str pollux_server

# Where pollux listens and keeps texts, set by itself; and where the user is, for pollux.
declare-option -hidden str pollux_socket
declare-option -hidden str pollux_dir
declare-option -hidden str pollux_mode normal
declare-option -hidden str pollux_prefix
declare-option -hidden str pollux_chosen
declare-option -hidden str pollux_origin
# Of a proposal's buffer: its id, its file, what pollux knows of it, and the marks of its changes.
declare-option -hidden str pollux_proposal
declare-option -hidden str pollux_path
declare-option -hidden str pollux_told
declare-option -hidden line-specs pollux_flags

try %{ source "%sh{dirname ""$kak_source""}/installed.kak" }

# ---- The program ----

define-command pollux-start -docstring 'start pollux for this Kakoune' %{
    set-option global pollux_socket ''
    evaluate-commands -buffer * %{ try %{ pollux-sync } }
    nop %sh{
        ( exec "$kak_opt_pollux_command" kakoune serve "$kak_session" "$PPID" "$kak_client" $kak_opt_pollux_server ) >/dev/null 2>&1 </dev/null &
    }
}

# pollux answers an event with commands.
define-command -hidden pollux-tell -params 1.. %{
    evaluate-commands %sh{
        # kak_opt_pollux_socket kak_opt_pollux_dir kak_client kak_buffile kak_selection_desc kak_opt_pollux_prefix kak_opt_pollux_chosen
        exec "$kak_opt_pollux_command" kakoune "$@"
    }
}

define-command pollux-stop -docstring 'end pollux for this Kakoune; what is open is rejected' %{ pollux-tell stop }
define-command pollux-status -docstring 'say who is connected' %{ pollux-tell status }
define-command pollux-pause -docstring 'tell agents nothing of what you look at; again resumes' %{ pollux-tell pause }
define-command pollux-resume -docstring 'tell agents again what you look at' %{ pollux-tell resume }
define-command pollux-answer -params ..1 -docstring 'pollux-answer [number]: answer a question of pollux''s, or leave it unanswered' %{ pollux-tell answer %arg{@} }
define-command pollux-send -params .. -docstring 'pollux-send [words]: mention the file, or the selected lines, to the agent' %{ pollux-tell send %arg{@} }

# ---- What the user looks at ----

# A selection that no environment holds is told by files.
define-command -hidden pollux-context %{
    evaluate-commands %sh{
        [ -n "$kak_opt_pollux_socket" ] || exit
        if [ "$kak_selection_length" -le 16000 ] && [ "$kak_cursor_column" -le 16000 ]; then
            echo pollux-choose
        else
            echo pollux-hand
        fi
        echo pollux-look
    }
}

# Tells where the users of all clients are, to a pollux that has just started.
define-command -hidden pollux-clients %{
    evaluate-commands %sh{
        for client in $kak_client_list; do echo "try %{ evaluate-commands -client $client pollux-context }"; done
    }
}

define-command -hidden pollux-in -params 1 %{
    evaluate-commands %sh{
        set -- $kak_client_list
        [ -n "$1" ] && echo "evaluate-commands -client $1 %arg{1}"
    }
}

define-command -hidden pollux-choose %{
    evaluate-commands -draft %{
        set-option global pollux_chosen %val{selection}
        execute-keys '<a-:><a-;>;Gh'
        set-option global pollux_prefix %val{selection}
    }
}

define-command -hidden pollux-hand %{
    set-option global pollux_prefix ''
    set-option global pollux_chosen ''
    evaluate-commands -draft %{
        echo -to-file "%opt{pollux_dir}/chosen" -- %val{selection}
        execute-keys '<a-:><a-;>;Gh'
        echo -to-file "%opt{pollux_dir}/prefix" -- %val{selection}
    }
}

define-command -hidden pollux-look %{
    evaluate-commands %sh{
        # kak_opt_pollux_socket kak_opt_pollux_dir kak_client kak_buffile kak_selection_desc kak_opt_pollux_prefix kak_opt_pollux_chosen
        eval set -- "$kak_quoted_buflist"
        exec "$kak_opt_pollux_command" kakoune context "$@"
    }
}

# ---- Proposals ----

# What stands in a proposal, as a file.
define-command -hidden pollux-sync %{
    evaluate-commands %sh{ [ -n "$kak_opt_pollux_proposal" ] || echo 'fail "this is no proposal"' }
    evaluate-commands -draft %{
        execute-keys '%'
        echo -to-file "%opt{pollux_dir}/%opt{pollux_proposal}.text" -- %val{selection}
    }
}

# Shows a proposal unless it has ended, or the user is amid something.
define-command -hidden pollux-offer -params 3 %{
    evaluate-commands %sh{ [ "$kak_opt_pollux_mode" = normal ] && [ -e "$kak_opt_pollux_dir/$1.text" ] || echo 'fail busy' }
    pollux-show %arg{@}
}

define-command -hidden pollux-show -params 3 %{
    evaluate-commands %sh{ [ -n "$kak_opt_pollux_proposal" ] || echo 'set-option global pollux_origin %val{bufname}' }
    evaluate-commands %sh{
        eval set -- "$kak_quoted_buflist" "$1"
        for last; do :; done
        n=0
        for name; do [ "$name" = "$last" ] && n=$((n + 1)); done
        [ $n -gt 1 ] || echo 'pollux-fill %arg{@}'
    }
    buffer %arg{2}
    pollux-mark
    echo -markup "{Information}%arg{2}: :w accepts, :q rejects, :pollux-changes shows what goes"
    pollux-tell shown %arg{@}
    pollux-context
}

define-command -hidden pollux-fill -params 3 %{
    edit! -scratch %arg{2}
    set-option buffer pollux_proposal %arg{1}
    set-option buffer pollux_path %arg{3}
    # The empty line that a new buffer has goes.
    evaluate-commands -draft %{ execute-keys '!cat "$kak_opt_pollux_dir/$kak_opt_pollux_proposal.text"<ret>gjxd' }
    execute-keys gg
    set-option buffer pollux_told %val{timestamp}
    try %{
        evaluate-commands -buffer %arg{3} %{ set-option global pollux_chosen %opt{filetype} }
        set-option buffer filetype %opt{pollux_chosen}
    }
    alias buffer w pollux-accept
    alias buffer w! pollux-accept
    alias buffer wq pollux-accept
    alias buffer q pollux-reject
    alias buffer q! pollux-reject
    alias buffer db pollux-reject
    hook buffer NormalIdle .* pollux-report
    hook buffer InsertIdle .* pollux-report
    hook buffer BufClose .* pollux-gone
    add-highlighter buffer/pollux flag-lines Default pollux_flags
}

# Tells an edit, if pollux listens: one that starts asks for what was not told.
define-command -hidden pollux-report %{
    evaluate-commands %sh{ [ -z "$kak_opt_pollux_socket" ] || [ "$kak_timestamp" = "$kak_opt_pollux_told" ] || echo 'pollux-mark; pollux-tell edited %opt{pollux_proposal}' }
}

# Takes a newer text over, unless the user has typed what pollux has not heard of.
define-command -hidden pollux-update %{
    pollux-sync
    evaluate-commands %sh{
        cd "$kak_opt_pollux_dir" && cmp -s "$kak_opt_pollux_proposal.text" "$kak_opt_pollux_proposal.sent" && echo pollux-renew
    }
}

define-command -hidden pollux-renew %{
    evaluate-commands -draft %{ execute-keys '%|cat "$kak_opt_pollux_dir/$kak_opt_pollux_proposal.next"<ret>' }
    pollux-sync
    set-option buffer pollux_told %val{timestamp}
}

# Marks the lines of a proposal that differ from the file's: new ones, changed ones, where some have gone, and where the file has others.
define-command -hidden pollux-mark %{
    pollux-sync
    set-option buffer pollux_told %val{timestamp}
    evaluate-commands %sh{
        printf 'set-option buffer pollux_flags %s' "$kak_timestamp"
        diff "$kak_opt_pollux_dir/$kak_opt_pollux_proposal.old" "$kak_opt_pollux_dir/$kak_opt_pollux_proposal.text" | awk -v q="'" -v conflicts="$kak_opt_pollux_dir/$kak_opt_pollux_proposal.conflict" '
            BEGIN { while ((getline n < conflicts) > 0) { theirs[n] = 1; printf " %s%d|{red+b}!%s", q, n, q } }
            /^[0-9]/ {
                how = $0; gsub(/[0-9,]/, "", how); split($0, sides, how); n = split(sides[2], to, ",")
                first = to[1] < 1 ? 1 : to[1]; last = n > 1 ? to[2] : first
                mark = how == "a" ? "{green}+" : how == "d" ? "{red}_" : "{yellow}~"
                for (i = first; i <= last; i++) if (!(i in theirs)) printf " %s%d|%s%s", q, i, mark, q
            }'
    }
}

define-command pollux-changes -docstring 'show how the proposal differs from the file' %{
    pollux-sync
    nop %sh{
        cd "$kak_opt_pollux_dir" && diff -u "$kak_opt_pollux_proposal.old" "$kak_opt_pollux_proposal.text" |
            sed '1s/.*/--- before/; 2s/.*/+++ proposal/' >changes.diff
    }
    edit! -readonly "%opt{pollux_dir}/changes.diff"
    echo -markup '{Information}ga goes back to the proposal'
}

define-command pollux-keep -docstring 'keep the proposal over what the file has now' %{ pollux-tell keep %opt{pollux_proposal} }
define-command pollux-take -docstring 'take the lines that the file has now' %{ pollux-tell take %opt{pollux_proposal} }

define-command pollux-accept-all -params ..1 -docstring 'pollux-accept-all [file]: accept the proposal, and all that follow of its session, or of its file' %{
    pollux-sync
    pollux-tell accept-all %opt{pollux_proposal} %val{bufname} %opt{pollux_path} %arg{@}
}

define-command pollux-accept -docstring 'accept the proposal as it stands' %{
    pollux-sync
    pollux-tell accept %opt{pollux_proposal} %val{bufname} %opt{pollux_path}
}

define-command pollux-reject -docstring 'reject the proposal' %{
    pollux-sync
    pollux-tell reject %opt{pollux_proposal} %val{bufname} %opt{pollux_path}
}

# A proposal whose buffer is deleted is rejected, with what stood in it at the last pause.
define-command -hidden pollux-gone %{
    nop %sh{
        # kak_opt_pollux_socket kak_opt_pollux_dir kak_client
        "$kak_opt_pollux_command" kakoune reject "$kak_opt_pollux_proposal" "$kak_bufname" "$kak_opt_pollux_path"
    }
}

define-command pollux-review -docstring 'show the next proposal that waits' %{ pollux-tell next }

# Ends a proposal's view. The user is where they were, if they were in it.
define-command -hidden pollux-close -params 2 %{
    evaluate-commands %sh{
        if [ "$kak_bufname" = "$1" ]; then echo 'try %{ buffer %opt{pollux_origin} }'; fi
    }
    try %{
        evaluate-commands -buffer %arg{1} %{ set-option buffer pollux_proposal '' }
        delete-buffer! %arg{1}
    }
    pollux-context
}

# Has a file read anew that an agent is about to write, where it has no unsaved changes.
define-command -hidden pollux-follow -params 1 %{
    try %{
        evaluate-commands -buffer %arg{1} %{
            evaluate-commands %sh{ [ "$kak_modified" = true ] || echo 'set-option buffer autoreload yes' }
        }
    }
}

# Shows what others have written to a file.
define-command -hidden pollux-reload %{
    evaluate-commands %sh{ [ "$kak_modified" = true ] || echo 'edit! %val{buffile}' }
}

# ---- What was ----

define-command pollux-history -params ..1 -docstring 'pollux-history [number]: list past proposals, or show one' %{ pollux-tell history %arg{@} }
define-command pollux-undo -params ..1 -docstring 'pollux-undo [number]: take back the change of a past proposal, the newest without a number' %{ pollux-tell undo %arg{@} }
define-command pollux-rules -docstring 'show what decides without you' %{ pollux-tell rules }
define-command pollux-policy -params 1.. -docstring 'pollux-policy ask|accept|terminal [path or pattern]: make a rule' \
    -shell-script-candidates 'printf "%s\n" ask accept terminal' %{ pollux-tell policy %arg{@} }

define-command -hidden pollux-list %{
    edit! -readonly "%opt{pollux_dir}/history"
    map buffer normal <ret> ':pollux-history %val{cursor_line}<ret>'
    echo -markup '{Information}Return shows one, :pollux-undo NUMBER takes its change back, ga goes back'
}

define-command -hidden pollux-past -params 1 %{
    nop %sh{
        cd "$kak_opt_pollux_dir" && diff -u past.old past.new | sed "1s/.*/--- before/; 2s/.*/+++ $1/" >past.diff
    }
    edit! -readonly "%opt{pollux_dir}/past.diff"
    echo -markup '{Information}ga goes back to the list'
}

# ---- When ----

hook -group pollux global KakBegin .* %{
    evaluate-commands %sh{ [ "$kak_opt_pollux_autostart" = true ] && echo pollux-start }
}
hook -group pollux global KakEnd .* %{
    evaluate-commands -buffer * %{ try %{ pollux-sync } } # a pollux that was killed does not know what was typed since
    nop %sh{
        # kak_opt_pollux_socket
        [ -n "$kak_opt_pollux_dir" ] &&
            exec "$kak_opt_pollux_command" kakoune quit "$kak_session" "$PPID" '' $kak_opt_pollux_server >/dev/null 2>&1 </dev/null
    }
}
hook -group pollux global ModeChange '.*:([^:]+)' %{ set-option window pollux_mode %val{hook_param_capture_1} }
hook -group pollux global NormalIdle .* pollux-context
hook -group pollux global InsertIdle .* pollux-context
hook -group pollux global FocusIn .* pollux-context

set-option global modelinefmt "%%opt{pollux_status} %opt{modelinefmt}"
