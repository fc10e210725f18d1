;;; pollux-menu.el --- A menu of the commands  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; `pollux-menu' shows the commands with a key each.  Transient is part of
;; Emacs since 28.1; with 27 it can be installed.

;;; Code:

(require 'pollux)

(eval-and-compile (require 'transient))

;;;###autoload (autoload 'pollux-menu "pollux-menu" nil t)
(transient-define-prefix pollux-menu ()
  "The commands of pollux."
  [["Terminal"
    ("t" "show or hide" pollux-toggle)
    ("f" "go there and back" pollux-focus)
    ("r" "run" pollux-run)
    ("R" "run another agent" pollux-run-agent)
    ("s" "mention this" pollux-send)]
   ["Proposals"
    ("v" "show" pollux-review)
    ("n" "next" pollux-next)
    ("a" "accept" pollux-accept)
    ("A" "accept all" pollux-accept-all)
    ("k" "reject" pollux-reject)]
   ["Before and after"
    ("h" "history" pollux-history)
    ("u" "undo" pollux-undo)
    ("o" "rules" pollux-rules)
    ("m" "merge with the disk" pollux-merge)]
   ["pollux"
    ("?" "status" pollux-status)
    ("P" "pause or resume" pollux-pause)
    ("p" "page" pollux-page)
    ("q" "answer a question" pollux-answer)
    ("l" "log" pollux-log)]])

(provide 'pollux-menu)
;;; pollux-menu.el ends here
