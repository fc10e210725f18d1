;;; pollux.el --- Gemini CLI in this editor  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: tools, processes
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; With `pollux-mode' Emacs is an IDE for Gemini CLI: the CLI knows which files
;; you have open, where point is and what the region holds, and shows its
;; changes in Ediff, where you can edit, accept or reject them.
;;
;; The mode starts one small process, "pollux lsp".  A CLI that is started in
;; one of your projects, in Emacs's terminals or any other, connects by itself;
;; M-x pollux-run starts one.
;;
;; In a diff: C-c C-c accepts what stands on the right, C-c C-k rejects, and so
;; do q in Ediff's control panel and killing the buffer.
;;
;; The manual is M-: (info "pollux"), or C-h i.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'pollux-rpc)
(require 'pollux-check)
(require 'pollux-context)
(require 'pollux-diff)
(require 'pollux-ask)
(require 'pollux-past)
(require 'pollux-term)

(defcustom pollux-command "pollux"
  "The companion's program, by name or path."
  :type 'string
  :group 'pollux)

(autoload 'pollux-menu "pollux-menu" "The commands of pollux." t)

(defvar pollux-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map " " #'pollux-menu)
    (define-key map "a" #'pollux-accept)
    (define-key map "A" #'pollux-accept-all)
    (define-key map "f" #'pollux-focus)
    (define-key map "h" #'pollux-history)
    (define-key map "k" #'pollux-reject)
    (define-key map "l" #'pollux-log)
    (define-key map "n" #'pollux-next)
    (define-key map "o" #'pollux-rules)
    (define-key map "p" #'pollux-set-policy)
    (define-key map "P" #'pollux-page)
    (define-key map "q" #'pollux-answer)
    (define-key map "r" #'pollux-run)
    (define-key map "R" #'pollux-restart)
    (define-key map "s" #'pollux-send)
    (define-key map "t" #'pollux-toggle)
    (define-key map "u" #'pollux-undo)
    (define-key map "v" #'pollux-review)
    (define-key map "z" #'pollux-pause)
    (define-key map "?" #'pollux-status)
    map)
  "The commands, for a prefix key of your choice.")
(fset 'pollux-command-map pollux-command-map)

(defvar pollux--failures 0 "How often the companion has ended without being asked.")
(defvar pollux--status nil "The last pollux/didChangeStatus, a plist.")
(defvar pollux--variables nil "The names of the variables that are set.")
(defvar pollux--first-roots nil
  "The folders of the first start.
A companion takes over from one of the same folders.")
(defvar pollux-mode)

;;;; The companion's process

(defun pollux--setenv (name value)
  "Set the variable NAME to VALUE in all of Emacs, nil to remove it.
Whatever buffer or binding has an environment of its own at the moment."
  (let ((process-environment (default-toplevel-value 'process-environment)))
    (setenv name value)
    (set-default-toplevel-value 'process-environment process-environment)))

(defun pollux--equip (set &optional unset)
  "Set the variables in the plist SET and remove those in the list UNSET."
  (dolist (name unset)
    (pollux--setenv name nil)
    (setq pollux--variables (delete name pollux--variables)))
  (cl-loop for (key value) on set by #'cddr
           do (let ((name (substring (symbol-name key) 1)))
                (pollux--setenv name value)
                (cl-pushnew name pollux--variables :test #'equal)))
  (setq pollux--environment
        (mapcar (lambda (name)
                  (concat name "=" (let ((process-environment (default-toplevel-value 'process-environment)))
                                     (getenv name))))
                pollux--variables)))

(defun pollux--start ()
  "Start the companion."
  (if (not (executable-find pollux-command))
      (pollux--complain "there is no program %s; install it or set `pollux-command'" pollux-command)
    (unless pollux--first-roots
      (setq pollux--first-roots (pollux--find-roots)))
    (setq pollux--roots pollux--first-roots)
    (condition-case err
        (progn
          (pollux--connect (list pollux-command "lsp") #'pollux--ended)
          (pollux--call "initialize" (pollux--hello) #'pollux--initialized))
      (error (pollux--complain "%s does not start: %s" pollux-command (error-message-string err))))))

(defun pollux--hello ()
  "Return what Emacs says of itself."
  (list :processId (emacs-pid)
        :clientInfo (list :name "Emacs" :version emacs-version)
        :workspaceFolders (pollux--folders pollux--roots)
        :capabilities '(:experimental (:pollux (:version 2 :context t :openDiff t :env t :types t)))
        :initializationOptions
        (list :pollux (list :version 2 :ide '(:name "emacs" :displayName "Emacs")
                            :idePid (emacs-pid)
                            :openDiffs (vconcat pollux--unheard (mapcar #'pollux--announcement pollux--diffs))))))

(defun pollux--initialized (result)
  "Take the companion's RESULT of initialize."
  (let ((answer (plist-get (plist-get (plist-get result :capabilities) :experimental) :pollux)))
    (pollux--equip (plist-get answer :env))
    (setq pollux--ready t pollux--error nil pollux--last nil)
    (pollux--notify "initialized" pollux--empty)
    (pollux--tell t)
    (pollux--tell-folders)
    (pollux--check-all)
    (let ((mine pollux--process))
      (run-at-time 5 nil (lambda ()
                           (when (eq mine pollux--process)
                             (setq pollux--failures 0)))))))

(defun pollux--ended ()
  "Start the companion again when it ended unasked."
  (setq pollux--status nil)
  (pollux--drop-questions)
  (dolist (diff pollux--diffs)
    (setf (pollux--diff-deciding diff) nil)) ; nobody answers that any more
  (force-mode-line-update t)
  (when pollux-mode
    ;; The views stay: the companion that comes back hears of them.
    (cl-incf pollux--failures)
    (when (= pollux--failures 4)
      (pollux--complain "the companion keeps ending; M-x pollux-log says why"))
    (run-at-time (min 30 (* 0.2 (expt 2 (1- (min pollux--failures 9))))) nil #'pollux--start-wanted)))

(defun pollux--start-wanted ()
  "Start the companion if the mode is still on."
  (when (and pollux-mode (not pollux--process))
    (pollux--start)))

(defun pollux--leave ()
  "Tell the companion what was typed just now, and that Emacs ends.
Another one is told where that one was killed, as no other knows what was
typed since."
  (if (or (pollux--live-p) (not (or pollux--diffs pollux--unheard)))
      (ignore-errors (mapc #'pollux--report-edit pollux--diffs))
    (pollux--say-last (list pollux-command "lsp") (cons "initialize" (pollux--hello))))
  (pollux--hang-up))

(defun pollux--stop ()
  "Stop the companion in good order; it rejects what is open.
Another one does that where that one was killed."
  (if (or (pollux--live-p) (not (or pollux--diffs pollux--unheard)))
      (mapc #'pollux--report-edit pollux--diffs)
    (pollux--say-last (list pollux-command "lsp") (cons "initialize" (pollux--hello)) '("shutdown" :keep :json-false)))
  (pollux--disconnect)
  (pollux--equip nil (copy-sequence pollux--variables))
  (setq pollux--status nil)
  (pollux--drop-questions)
  (setq pollux--unheard nil)
  (mapc #'pollux--finish (copy-sequence pollux--diffs)))

(defun pollux--open-document (params answer)
  "Show the file of PARAMS and tell ANSWER."
  (let* ((path (pollux--path (plist-get params :uri)))
         (start (plist-get (plist-get params :selection) :start))
         (buffer (find-file-noselect path t)))
    (when (and (eq (plist-get params :takeFocus) t) (pollux--screen-p) (not (active-minibuffer-window)))
      (pop-to-buffer buffer)
      (when start
        (pollux--go (plist-get start :line) (plist-get start :character))
        (pollux--touch))) ; no command of the user's has moved point
    (funcall answer '(:opened t))))

(defun pollux--save-document (params answer)
  "Save the buffer of the file of PARAMS and tell ANSWER.
A file that others have written since Emacs read it is left alone."
  (let* ((path (pollux--path (plist-get params :uri)))
         (buffer (find-buffer-visiting path))
         (why (cond ((not buffer) "it is not open in the editor")
                    ((not (buffer-modified-p buffer)) nil)
                    ((buffer-local-value 'buffer-read-only buffer) "the editor has it read-only")
                    ((not (verify-visited-file-modtime buffer)) "it has changed on disk since the editor read it")
                    (t (condition-case problem
                           (with-current-buffer buffer (save-buffer) nil)
                         (error (error-message-string problem)))))))
    (funcall answer (if why (list :saved :json-false :why why) '(:saved t)))))

(defun pollux--go (line character)
  "Go to LINE and CHARACTER, as LSP counts, even out of a narrowed part."
  (let (point)
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line line)
      (let ((units 0))
        (while (and (< units (or character 0)) (not (eolp)))
          (setq units (+ units (if (> (char-after) #xffff) 2 1)))
          (forward-char)))
      (setq point (point)))
    (unless (<= (point-min) point (point-max))
      (widen))
    (goto-char point)))

(defun pollux--status-changed (params _)
  "Take the numbers in PARAMS for the mode line."
  (setq pollux--status params)
  (force-mode-line-update t))

(defun pollux--message (params _)
  "Show the message in PARAMS."
  (if (eql (plist-get params :type) 1)
      (pollux--complain "%s" (string-remove-prefix "pollux: " (plist-get params :message)))
    (message "[pollux] %s" (string-remove-prefix "pollux: " (plist-get params :message)))))

(defun pollux--env-changed (params _)
  "Take the variables in PARAMS."
  (pollux--equip (plist-get params :set) (append (plist-get params :unset) nil)))

(setq pollux--handlers
      '(("pollux/openDiff" . pollux--open-diff)
        ("pollux/closeDiff" . pollux--close-diff)
        ("pollux/didChangeBase" . pollux--base-changed)
        ("pollux/didChangeProposal" . pollux--proposal-changed)
        ("pollux/filesChanged" . pollux--files-changed)
        ("pollux/openDocument" . pollux--open-document)
        ("pollux/saveDocument" . pollux--save-document)
        ("pollux/ask" . pollux--ask)
        ("pollux/typeText" . pollux--type-text)
        ("pollux/didChangeEnv" . pollux--env-changed)
        ("pollux/didChangeStatus" . pollux--status-changed)
        ("window/showMessage" . pollux--message)))

;;;; Commands

(defun pollux--wait ()
  "Wait a moment for the companion, so that a terminal knows of it."
  (unless pollux-mode
    (pollux-mode 1))
  (pollux--start-wanted)
  (let ((end (+ (float-time) 3)))
    (while (and pollux--process (not pollux--ready) (< (float-time) end))
      (accept-process-output nil 0.05))))

;;;###autoload
(defun pollux-run (&optional another)
  "Show the project's Gemini CLI in a terminal of Emacs's; start it if needed.
With a prefix argument ANOTHER, start one more.  See `pollux-terminal'.
While a diff is on show the CLI takes the place of its left side."
  (interactive "P")
  (pollux--wait)
  (pollux--tell) ; where the user is, as that is what the CLI will hear of
  (let* ((buffer (pollux--run another))
         (diff (cl-find-if #'pollux--visible-p pollux--diffs))
         (side (and diff (not (get-buffer-window buffer)) (get-buffer-window (pollux--diff-left diff)))))
    (if side
        (set-window-buffer (select-window side) buffer)
      (pollux--pop-to buffer))
    (set-buffer buffer)))

(defun pollux--pop-to (buffer)
  "Show the terminal BUFFER where `pollux-side' says, and go there."
  (pop-to-buffer buffer (and pollux-side
                             `((display-buffer-reuse-window display-buffer-in-direction)
                               (direction . ,(pcase pollux-side ('right 'rightmost) ('left 'leftmost) (side side)))
                               (window-width . ,pollux-width) (window-height . ,pollux-width)))))

;;;###autoload
(defun pollux-run-agent (program &optional arguments)
  "Show the project's terminal of the agent PROGRAM; start it if needed.
With a prefix argument it is started with ARGUMENTS that are asked for, such as
--resume or --continue."
  (interactive
   (list (completing-read "Agent: " (cl-remove-if-not #'executable-find '("gemini" "claude" "qwen" "copilot" "codex" "opencode"))
                          nil nil nil nil pollux-cli)
         (and current-prefix-arg (split-string-and-unquote (completing-read "Options: " '("--resume" "--continue"))))))
  (pollux--wait)
  (pollux--tell)
  (pollux--pop-to (pollux--run nil program arguments)))

;;;###autoload
(defun pollux-toggle ()
  "Hide the window of the project's CLI, or show it; start the CLI if needed."
  (interactive)
  (let* ((buffer (pollux--running pollux-cli)) (window (and buffer (get-buffer-window buffer))))
    (if (not window)
        (pollux-run)
      (if (eq window (frame-root-window))
          (switch-to-prev-buffer window)
        (delete-window window)))))

;;;###autoload
(defun pollux-focus ()
  "Go to the project's CLI, and from there back to where you were."
  (interactive)
  (if (eq (current-buffer) (pollux--running pollux-cli))
      (select-window (or (get-mru-window nil nil t) (selected-window)))
    (pollux-run)))

(defun pollux--session-name (session)
  "Return SESSION's name and version."
  (concat (plist-get session :name)
          (if-let ((version (plist-get session :version))) (concat " " version) "")))

(defun pollux--diff-line (pending)
  "Return what PENDING, a diff in the result of pollux.status, is about."
  (let ((n (cl-position (plist-get pending :diffId) pollux--diffs :key #'pollux--diff-id :test #'equal)))
    (format "%s %s (%s)%s" (if n (1+ n) "-") (plist-get pending :filePath) (plist-get pending :session)
            (if n "" ", on the page: M-x pollux-page"))))

(defun pollux--report (status)
  "Insert STATUS, the result of pollux.status, for a person to read."
  (cl-flet ((line (label value) (insert (format "%-12s %s\n" label value)))
            (each (label list) (cl-loop for item in (or list '("none"))
                                        do (insert (format "%-12s %s\n" label item)) (setq label ""))))
    (line "Companion" (format "pollux %s on port %s%s" (plist-get status :version) (plist-get status :port)
                              (if (eq (plist-get status :resumed) t) ", resumed" "")))
    (each "Folders" (append (plist-get status :roots) nil))
    (line "Discovery" (plist-get status :discoveryFile))
    (each "CLIs" (mapcar #'pollux--session-name (plist-get status :sessions)))
    (line "Sharing" (cond ((pollux--paused-p) "paused; M-x pollux-resume ends that")
                          ((member (plist-get status :sharing) '(nil "")) "with nobody")
                          (t (plist-get status :sharing))))
    (each "Diffs" (mapcar #'pollux--diff-line (plist-get status :diffs)))
    (each "Policy" (mapcar (lambda (rule)
                             (string-trim (format "%s %s %s" (plist-get rule :mode) (or (plist-get rule :owner) "")
                                                  (or (plist-get rule :pattern) ""))))
                           (plist-get status :rules)))
    (line "Log" (or (plist-get status :log) "none"))
    (line "Last error" (or pollux--error (plist-get status :lastError) "none"))))

(defun pollux--show-status (insert)
  "Show the buffer *pollux* with what INSERT inserts."
  (with-current-buffer (get-buffer-create "*pollux*")
    (special-mode)
    (setq-local revert-buffer-function (lambda (&rest _) (pollux-status)))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (funcall insert))
    (goto-char (point-min))
    (display-buffer (current-buffer))))

;;;###autoload
(defun pollux-status ()
  "Show the state of the companion: port, folders, CLIs, diffs, the last error."
  (interactive)
  (if pollux--ready
      (pollux--call "workspace/executeCommand" '(:command "pollux.status")
                    (lambda (status) (pollux--show-status (lambda () (pollux--report status)))))
    (pollux--show-status
     (lambda ()
       (insert (format "Companion    it does not run\nLast error   %s\n\n%s\n" (or pollux--error "none")
                       (if pollux-mode "M-x pollux-log says more." "M-x pollux-mode starts it.")))))))

;;;###autoload
(defun pollux-log ()
  "Show pollux's log as it grows, or what the companion said before it ended."
  (interactive)
  (let ((stderr (get-buffer " *pollux stderr*")))
    (if (not pollux--ready)
        (if stderr (display-buffer stderr) (user-error "The companion has never run; M-x pollux-mode starts it"))
      (pollux--call "workspace/executeCommand" '(:command "pollux.status")
                    (lambda (status)
                      (let ((log (plist-get status :log)))
                        (if (not (and log (file-readable-p log)))
                            (pollux--complain "there is no log%s" (if log (concat " at " log) ""))
                          (with-current-buffer (find-file-noselect log t)
                            (read-only-mode 1)
                            (auto-revert-tail-mode 1)
                            (goto-char (point-max))
                            (display-buffer (current-buffer))))))))))

;;;###autoload
(defun pollux-page ()
  "Open pollux's editor page in the browser, with all diffs that wait."
  (interactive)
  (pollux--check-ready)
  (pollux--call "workspace/executeCommand" '(:command "pollux.review")
                (lambda (_) (message "[pollux] its page is open in the browser"))))

(defun pollux--paused-p ()
  "Whether agents are told nothing of what the user looks at."
  (equal (plist-get pollux--status :context) "paused"))

;;;###autoload
(defun pollux-pause ()
  "Stop telling agents what you look at, or resume it.
While sharing is paused no agent hears of a file, point, region or problem;
proposals come as ever."
  (interactive)
  (pollux--share (if (pollux--paused-p) "on" "paused")))

;;;###autoload
(defun pollux-resume ()
  "Tell agents again what you look at."
  (interactive)
  (pollux--share "on"))

(defun pollux--share (to)
  "Have the companion take the state TO, \"on\" or \"paused\"."
  (pollux--check-ready)
  (pollux--call "workspace/executeCommand" `(:command "pollux.setContext" :arguments [(:state ,to)])
                (lambda (_)
                  ;; The status comes later than the user's next key may.
                  (setq pollux--status (plist-put (copy-sequence pollux--status) :context to))
                  (message (if (equal to "on") "[pollux] agents are told what you look at"
                             "[pollux] agents are told nothing of what you look at; M-x pollux-resume ends that")))))

;;;###autoload
(defun pollux-restart ()
  "Start the companion anew; diffs that are open are rejected."
  (interactive)
  (if (not pollux-mode)
      (pollux-mode 1)
    (when (pollux--live-p) ; else what is open is announced to the next one
      (pollux--stop))
    (setq pollux--failures 0)
    (pollux--start)))

;;;; The mode

(defvar pollux--mode-line-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line mouse-1] #'pollux-status)
    map)
  "What the mouse does on the mode line.")

(defun pollux-mode-line ()
  "Return a few characters for the mode line."
  (let ((waiting (or (plist-get pollux--status :pendingDiffs) 0)))
    (propertize (if (not pollux--ready)
                    " Pollux:-"
                  (concat " Pollux:" (if (member (plist-get pollux--status :agents) '(nil "")) "no agent" (plist-get pollux--status :agents))
                          (and (> waiting 0) (format " ±%d" waiting))
                          (and (not (member (plist-get pollux--status :untold) '(nil "")))
                               (concat " not told: " (plist-get pollux--status :untold)))
                          (and (pollux--paused-p) " paused")))
                'help-echo "CLIs that are connected, ± diffs that wait, who is not told what you look at; mouse-1: status"
                'local-map pollux--mode-line-map)))

(defconst pollux--hooks
  '((post-command-hook . pollux--touch)
    (window-selection-change-functions . pollux--touch)
    (window-buffer-change-functions . pollux--touch-files)
    (find-file-hook . pollux--touch-folders)
    (after-save-hook . pollux--touch-folders)
    (after-set-visited-file-name-hook . pollux--touch-folders)
    (after-revert-hook . pollux--touch-files)
    (buffer-list-update-hook . pollux--forget-files)
    (delete-frame-functions . pollux--frame-goes)
    (after-delete-frame-functions . pollux--touch)
    (kill-emacs-hook . pollux--leave))
  "What the mode listens to.")

(defvar pollux--idle-timer nil "The timer that looks at files which others may have removed.")

;;;###autoload
(define-minor-mode pollux-mode
  "Make Emacs an IDE for Gemini CLI."
  :global t
  :lighter (:eval (pollux-mode-line))
  :group 'pollux
  (pcase-dolist (`(,hook . ,function) pollux--hooks)
    (if pollux-mode (add-hook hook function) (remove-hook hook function)))
  (when (timerp pollux--idle-timer)
    (cancel-timer pollux--idle-timer))
  (pollux--listen-to-tools pollux-mode)
  (if (not pollux-mode)
      (progn
        (remove-function after-focus-change-function #'pollux--touch-files)
        (pollux--stop))
    (add-function :after after-focus-change-function #'pollux--touch-files)
    (setq pollux--failures 0 pollux--files t
          pollux--idle-timer (run-with-idle-timer 2 t #'pollux--touch-files))
    (unless pollux--process
      ;; After the first screen.
      (run-with-idle-timer 0.02 nil #'pollux--start-wanted))))

;;;; The manual

(defvar Info-additional-directory-list)

(let ((info (expand-file-name "info" (file-name-directory (or load-file-name buffer-file-name "")))))
  (when (file-exists-p (expand-file-name "pollux.info" info))
    ;; Before info.el has been loaded, which keeps what is there.
    (setq Info-additional-directory-list
          (cons info (remove info (bound-and-true-p Info-additional-directory-list))))))

(provide 'pollux)
;;; pollux.el ends here
