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
(declare-function dired-get-file-for-visit "dired")
(declare-function flymake-diagnostic-text "flymake")
(declare-function flymake-diagnostics "flymake")
(declare-function treemacs-button-get "ext:treemacs")
(declare-function treemacs-current-button "ext:treemacs")
(declare-function neo-buffer--get-filename-current-line "ext:neotree")
(defvar pollux--status)
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
    (user-error "There is no program %s; install it first%s" program
                (if (equal program "gemini") ": npm install -g @google/gemini-cli" "")))
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

(defun pollux--type (terminal text)
  "Type TEXT into TERMINAL."
  (with-current-buffer terminal
    (cond ((derived-mode-p 'vterm-mode) (vterm-send-string text))
          ((derived-mode-p 'eat-mode) (eat-term-send-string eat-terminal text))
          (t (process-send-string (get-buffer-process terminal) text)))))

;;;; Mentions

(defun pollux--type-text (params reply)
  "Type the text of PARAMS into the terminal of Emacs's own that it names; REPLY."
  (let ((buffer (cl-find-if (lambda (buffer)
                              (when-let ((process (get-buffer-process buffer)))
                                (and (process-tty-name process)
                                     (eql (process-id process) (plist-get params :processId)))))
                            (buffer-list))))
    (when buffer
      (pollux--type buffer (plist-get params :text)))
    (funcall reply (list :typed (if buffer t :false)))))

(defun pollux--this ()
  "Return the file that the user means by this one, or a folder; nil for none."
  (cond ((derived-mode-p 'dired-mode) (ignore-errors (dired-get-file-for-visit)))
        ((derived-mode-p 'treemacs-mode)
         (ignore-errors (treemacs-button-get (treemacs-current-button) :path)))
        ((derived-mode-p 'neotree-mode) (ignore-errors (neo-buffer--get-filename-current-line)))
        (t (pollux--file (current-buffer)))))

(defun pollux--lines ()
  "Return the first and the last line of the region, nil when there is none."
  (when (use-region-p)
    (cons (line-number-at-pos (region-beginning) t)
          (line-number-at-pos (max (region-beginning) (1- (region-end))) t))))

(defun pollux--one-line (text)
  "Return TEXT without control characters, on one line."
  (string-trim (replace-regexp-in-string "[[:cntrl:][:space:]]+" " " (or text ""))))

(defun pollux--terminal-for (path)
  "Return the terminal of Emacs's whose CLI PATH is meant for, nil for none."
  (let ((all (pollux--terminals)))
    (or (cl-find-if (lambda (buffer)
                      (file-in-directory-p path (buffer-local-value 'default-directory buffer)))
                    all)
        (car all))))

(defun pollux--pointed (done)
  "Say what became of a mention: DONE."
  (message "[pollux] %s: press Enter there (%s)" (plist-get done :session)
           (if (equal (plist-get done :by) "protocol") "by its protocol"
             (concat "typed by " (plist-get done :by)))))

(defun pollux--point-at (path lines words)
  "Mention PATH, its LINES and WORDS to an agent.
It is that of Emacs's own terminal, else the connected one; of several the user
is asked which."
  (let* ((terminal (pollux--terminal-for path))
         (sessions (append (plist-get pollux--status :sessions) nil))
         (names (mapcar (lambda (session) (plist-get session :name)) sessions))
         (name (if (and (cdr names) (not terminal)) (completing-read "Mention it to: " names nil t) (car names)))
         (session (and (not terminal)
                       (cl-find name sessions :key (lambda (s) (plist-get s :name)) :test #'equal))))
    (unless (or terminal session)
      (user-error "No CLI runs here; start one with M-x pollux-run"))
    (pollux--call "workspace/executeCommand"
                  `(:command "pollux.mention"
                    :arguments [(:uri ,(pollux--uri (expand-file-name path))
                                 :first ,(or (car lines) 0) :last ,(or (cdr lines) 0) :words ,words
                                 :processId ,(if terminal (process-id (get-buffer-process terminal)) 0)
                                 :session ,(or (plist-get session :id) 0))])
                  #'pollux--pointed)))

;;;###autoload
(defun pollux-send (&optional words)
  "Mention this file, or the region's lines, to an agent; nothing is sent there.
With a prefix argument ask for WORDS of yours that follow in its prompt.  In a
list of files it is the file or folder at point."
  (interactive (list (when current-prefix-arg (read-string "Words behind the mention: "))))
  (pollux--point-at (or (pollux--this) (user-error "This buffer is no file on disk"))
                    (pollux--lines) (pollux--one-line words)))

;;;###autoload
(defun pollux-send-problem ()
  "Mention the line at point to an agent, with the problem found there."
  (interactive)
  (let ((said (or (help-at-pt-kbd-string)
                  (when (fboundp 'flymake-diagnostics)
                    (when-let ((found (car (flymake-diagnostics (line-beginning-position) (line-end-position)))))
                      (flymake-diagnostic-text found)))
                  (user-error "There is no problem in this line")))
        (line (line-number-at-pos nil t)))
    (pollux--point-at (or (pollux--this) (user-error "This buffer is no file on disk"))
                      (cons line line) (pollux--one-line (substring-no-properties said)))))

(provide 'pollux-term)
;;; pollux-term.el ends here
