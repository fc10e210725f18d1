;;; pollux-term.el --- The CLI in a terminal of Emacs's  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; `pollux-run' starts the CLI in term, ansi-term, eshell, vterm or eat;
;; `pollux-send' types a mention of what you look at into it.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'pollux-rpc)
(require 'pollux-context)

(declare-function eat-make "ext:eat")
(declare-function eat-term-send-string "ext:eat")
(declare-function eshell "eshell")
(declare-function eshell-send-input "esh-mode")
(declare-function term-char-mode "term")
(declare-function term-emulate-terminal "term")
(declare-function term-mode "term")
(declare-function term-set-escape-char "term")
(declare-function vterm "ext:vterm")
(declare-function vterm-send-string "ext:vterm")
(defvar eat-terminal)
(defvar eshell-buffer-name)
(defvar eshell-visual-commands)
(defvar term-escape-char)
(defvar vterm-buffer-name)
(defvar vterm-shell)

(defcustom pollux-cli-arguments nil
  "The CLI's arguments."
  :type '(repeat string)
  :group 'pollux)

(defcustom pollux-terminal 'auto
  "The terminal that `pollux-run' starts the CLI in.
With `auto' it is vterm or eat where they have been loaded, else term.  A
function is called in the project's folder with the name of a buffer, the
program and its arguments as a list, and returns the buffer."
  :type '(choice (const auto) (const term) (const ansi-term) (const eshell)
                 (const vterm) (const eat) function)
  :group 'pollux)

(defcustom pollux-side nil
  "The side of the frame at which the CLI's terminal is shown.
With nil, Emacs chooses a window."
  :type '(choice (const :tag "any window" nil) (const right) (const left) (const bottom) (const top))
  :group 'pollux)

(defcustom pollux-width 0.4
  "How wide or high the window at `pollux-side' is.
A share of the frame, or columns or lines."
  :type 'number
  :group 'pollux)

(defvar pollux--environment nil "The variables that terminals need, as NAME=VALUE.")

(defconst pollux--term-amiss
  (concat "\e\\[2K"                                        ; erase the line: done from the cursor on
          "\\|\e\\[\\([0-9]+\\)G"                          ; go to a column: goes to the next one
          "\\|\e\\][^\a\e]*\\(?:\a\\|\e\\\\\\)"              ; a title: taken for text
          "\\|\\(?2:\e\\(?:\\[[0-9]*\\|\\][^\a\e]\\{0,999\\}\e?\\)?\\)\\'") ; what is not complete yet
  "What term does wrong; the CLI draws its screen by it.")

(defun pollux--term-filter (process output)
  "Hand OUTPUT of PROCESS to term, with other words for what term does wrong."
  (let ((rest ""))
    (setq output (replace-regexp-in-string
                  pollux--term-amiss
                  (lambda (found)
                    (cond ((match-string 2 found) (setq rest found) "")
                          ((match-string 1 found)
                           (format "\e[%dG" (max 0 (1- (string-to-number (match-string 1 found))))))
                          ((string-prefix-p "\e[" found) "\e[1K\e[K")
                          (t "")))
                  (concat (process-get process 'pollux-rest) output) t t))
    (process-put process 'pollux-rest rest)
    (term-emulate-terminal process output)))

(defun pollux--term (name program arguments)
  "Run PROGRAM with ARGUMENTS in a term buffer called NAME."
  (require 'term)
  (let ((buffer (apply #'make-term (string-trim name "\\*" "\\*") program nil arguments)))
    (with-current-buffer buffer
      (term-mode)
      (term-char-mode)
      (when (eq pollux-terminal 'ansi-term)
        (let (term-escape-char) ; C-c stays one too, as in `ansi-term'
          (term-set-escape-char ?\C-x))))
    (set-process-filter (get-buffer-process buffer) #'pollux--term-filter)
    buffer))

(defun pollux--vterm (name program arguments)
  "Run PROGRAM with ARGUMENTS in vterm, in a buffer called NAME."
  (require 'vterm)
  (let ((vterm-shell (mapconcat #'shell-quote-argument (cons program arguments) " "))
        (vterm-buffer-name name))
    (save-window-excursion (vterm) (current-buffer))))

(defun pollux--eat (name program arguments)
  "Run PROGRAM with ARGUMENTS in eat, in a buffer called NAME."
  (require 'eat)
  (apply #'eat-make (string-trim name "\\*" "\\*") program nil arguments))

(defun pollux--eshell (name program arguments)
  "Run PROGRAM with ARGUMENTS from eshell, in a buffer called NAME.
A program that fills the screen gets a term buffer from eshell."
  (require 'eshell)
  (require 'em-term)
  (let ((eshell-buffer-name (generate-new-buffer-name "*eshell: gemini*")) (before (buffer-list)))
    (save-window-excursion
      (eshell)
      (setq-local eshell-visual-commands (cons (file-name-nondirectory program) eshell-visual-commands))
      (goto-char (point-max))
      (insert (mapconcat #'shell-quote-argument (cons program arguments) " "))
      (eshell-send-input)
      (with-current-buffer (or (cl-find-if (lambda (buffer)
                                             (and (not (memq buffer before))
                                                  (eq (buffer-local-value 'major-mode buffer) 'term-mode)))
                                           (buffer-list))
                               (error "Eshell did not start %s" program))
        (rename-buffer name t)
        (set-process-filter (get-buffer-process (current-buffer)) #'pollux--term-filter)
        (current-buffer)))))

(defun pollux--terminal-function ()
  "Return the function that starts a terminal."
  (pcase pollux-terminal
    ('auto (cond ((featurep 'vterm) #'pollux--vterm) ((featurep 'eat) #'pollux--eat) (t #'pollux--term)))
    ((or 'term 'ansi-term) #'pollux--term)
    ('vterm #'pollux--vterm)
    ('eat #'pollux--eat)
    ('eshell #'pollux--eshell)
    ((pred functionp) pollux-terminal)
    (_ (user-error "The value of pollux-terminal is no terminal: %S" pollux-terminal))))

(defun pollux--terminals ()
  "Return the buffers in which the CLI runs, the latest used first."
  (cl-remove-if-not (lambda (buffer)
                      (and (get-buffer-process buffer) (pollux--terminal-of-cli-p buffer)))
                    (buffer-list)))

(defun pollux--run-folder ()
  "Return the folder that the CLI belongs into."
  (file-name-as-directory
   (expand-file-name (or (and (buffer-file-name) (ignore-errors (funcall pollux-roots-function)))
                         (pollux--cached-root default-directory)
                         default-directory))))

(defun pollux--agent-name (program)
  "Return what the agent that PROGRAM runs is called."
  (file-name-base program))

(defun pollux--running (program)
  "Return the buffer in which PROGRAM runs for this project, nil without one."
  (let ((folder (pollux--run-folder)) (agent (pollux--agent-name program)))
    (cl-find-if (lambda (buffer)
                  (and (file-equal-p (buffer-local-value 'default-directory buffer) folder)
                       (let ((runs (buffer-local-value 'pollux-cli-buffer buffer)))
                         (if (stringp runs) (equal runs agent) (equal program pollux-cli)))))
                (pollux--terminals))))

(defun pollux--run (another &optional program arguments)
  "Return a buffer with the CLI of this project, a new one with ANOTHER.
PROGRAM and ARGUMENTS are those of another agent."
  (unless program
    (setq program pollux-cli arguments pollux-cli-arguments))
  (unless (executable-find program)
    (user-error "There is no program %s; install Gemini CLI: npm install -g @google/gemini-cli" program))
  (let* ((default-directory (pollux--run-folder))
         (name (format "*%s: %s*" (if (equal program pollux-cli) "gemini" (pollux--agent-name program))
                       (file-name-nondirectory (directory-file-name default-directory))))
         (there (pollux--running program))
         ;; Where direnv and the like have an environment of their own in this buffer.
         (process-environment (append pollux--environment process-environment)))
    (if (and there (not another))
        there
      (let ((buffer (funcall (pollux--terminal-function)
                             (if (get-buffer-process name) (generate-new-buffer-name name) name)
                             program arguments)))
        (with-current-buffer buffer
          (setq pollux-cli-buffer (pollux--agent-name program)))
        buffer))))

(defun pollux--mention (path terminal)
  "Return what mentions PATH, and the region's lines, to the CLI in TERMINAL."
  (let ((name (file-relative-name path (buffer-local-value 'default-directory terminal))))
    (concat "@" (replace-regexp-in-string "[][[:blank:]\\\\(){},;|*?$`'\"#&<>!~]" "\\\\\\&"
                                          (if (string-prefix-p "../" name) path name))
            (when (use-region-p)
              (let ((first (line-number-at-pos (region-beginning) t))
                    (last (line-number-at-pos (max (region-beginning) (1- (region-end))) t)))
                (if (= first last) (format " line %d" first) (format " lines %d-%d" first last))))
            " ")))

(defun pollux--type (terminal text)
  "Type TEXT into TERMINAL."
  (with-current-buffer terminal
    (cond ((derived-mode-p 'vterm-mode) (vterm-send-string text))
          ((derived-mode-p 'eat-mode) (eat-term-send-string eat-terminal text))
          (t (process-send-string (get-buffer-process terminal) text)))))

;;;###autoload
(defun pollux-send ()
  "Type a mention of this file, with the region's lines, into the CLI's terminal."
  (interactive)
  (let* ((path (or (pollux--file (current-buffer)) (user-error "This buffer is no file on disk")))
         (all (or (pollux--terminals) (user-error "No CLI runs here; start one with M-x pollux-run")))
         (terminal (or (cl-find-if (lambda (buffer)
                                     (file-in-directory-p path (buffer-local-value 'default-directory buffer)))
                                   all)
                       (car all)))
         (mention (pollux--mention path terminal)))
    (pollux--type terminal mention)
    (message "[pollux] typed %sinto %s" mention (buffer-name terminal))))

(provide 'pollux-term)
;;; pollux-term.el ends here
