;;; pollux.el --- Gemini CLI in this editor  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: tools, processes
;; URL: https://github.com/pollux-companion/pollux

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

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'subr-x)
(require 'url-util)

(declare-function ediff-really-quit "ediff-util")
(declare-function ediff-setup-windows-plain "ediff-wind")
(declare-function extract-rectangle "rect")
(declare-function term-char-mode "term")
(declare-function term-mode "term")
(defvar ediff-split-window-function)
(defvar ediff-window-setup-function)
(defvar ediff-quit-hook)
(defvar rectangle-mark-mode)
(defvar term-raw-map)

(defgroup pollux nil
  "Gemini CLI in this editor."
  :group 'tools)

(defcustom pollux-command "pollux"
  "The companion's program, by name or path."
  :type 'string)

(defcustom pollux-cli "gemini"
  "What `pollux-run' starts."
  :type 'string)

(defcustom pollux-focus 'idle
  "When a diff may take the screen: at once, when you pause, or never."
  :type '(choice (const now) (const idle) (const never)))

(defcustom pollux-idle 1.0
  "How many seconds without input are a pause."
  :type 'number)

(defconst pollux--limit (+ 16384 512)
  "The largest selection that is told, in UTF-16 units.")

;;;; The companion's process

(defvar pollux--connection nil "The `jsonrpc-connection', nil without a companion.")
(defvar pollux--ready nil "Non-nil when the companion has been initialized.")
(defvar pollux--failures 0 "How often the companion has ended without being asked.")
(defvar pollux--environment nil "The names of the variables that are set.")
(defvar pollux--first-roots nil
  "The folders of the first start.
A companion takes over from one of the same folders.")
(defvar pollux--roots nil "The folders that were told last.")
(defvar pollux--status nil "The last pollux/didChangeStatus, a plist.")
(defvar pollux--error nil "The last error that was told.")
(defvar pollux--diffs nil "The diffs that wait for a decision, oldest first.")
(defvar pollux--last nil "The context that was told last.")
(defvar pollux-mode)

(defun pollux--complain (format &rest args)
  "Tell and remember the error FORMAT with ARGS."
  (setq pollux--error (apply #'format format args))
  (message "[pollux] %s" pollux--error))

(defun pollux--notify (method params)
  "Send the notification METHOD with PARAMS, when there is a companion."
  (when (and pollux--connection (jsonrpc-running-p pollux--connection))
    (jsonrpc-notify pollux--connection method params)))

(defun pollux--uri (path)
  "Return the file: URI of PATH."
  (concat "file://" (if (string-prefix-p "/" path) "" "/")
          (url-hexify-string (encode-coding-string path 'utf-8)
                             (append '(?/ ?:) url-unreserved-chars))))

(defun pollux--folders (roots)
  "Return ROOTS as LSP's workspace folders."
  (vconcat (mapcar (lambda (dir)
                     (list :uri (pollux--uri dir)
                           :name (file-name-nondirectory dir)))
                   roots)))

(defun pollux--equip (set &optional unset)
  "Set the variables in the plist SET and remove those in UNSET."
  (mapc #'setenv unset)
  (cl-loop for (key value) on set by #'cddr
           do (let ((name (substring (symbol-name key) 1)))
                (setenv name value)
                (cl-pushnew name pollux--environment :test #'equal))))

(defun pollux--start ()
  "Start the companion."
  (if (not (executable-find pollux-command))
      (pollux--complain "there is no program %s; install it or set `pollux-command'" pollux-command)
    (unless pollux--first-roots
      (setq pollux--first-roots (pollux--find-roots)))
    (setq pollux--roots pollux--first-roots
          pollux--ready nil
          pollux--connection
          (make-instance
           'jsonrpc-process-connection :name "pollux"
           :events-buffer-scrollback-size 0
           :request-dispatcher #'pollux--request
           :notification-dispatcher #'pollux--notification
           :on-shutdown #'pollux--ended
           :process (lambda ()
                      (make-process :name "pollux" :command (list pollux-command "lsp")
                                    :connection-type 'pipe :coding 'utf-8-emacs-unix
                                    :stderr (get-buffer-create " *pollux stderr*")
                                    :noquery t))))
    (jsonrpc-async-request
     pollux--connection :initialize
     (list :processId (emacs-pid)
           :clientInfo (list :name "Emacs" :version emacs-version)
           :workspaceFolders (pollux--folders pollux--roots)
           :capabilities '(:experimental (:pollux (:version 1 :context t :openDiff t :env t)))
           :initializationOptions
           (list :pollux (list :version 1 :ide '(:name "emacs" :displayName "Emacs")
                               :idePid (emacs-pid)
                               :openDiffs (vconcat (mapcar #'pollux--announcement pollux--diffs)))))
     :success-fn #'pollux--initialized
     :error-fn (lambda (err) (pollux--complain "%s" (plist-get err :message)))
     :timeout 30)))

(defun pollux--initialized (result)
  "Take the companion's RESULT of initialize."
  (let ((answer (plist-get (plist-get (plist-get result :capabilities) :experimental) :pollux)))
    (pollux--equip (plist-get answer :env))
    (setq pollux--ready t pollux--error nil pollux--last nil)
    (pollux--notify :initialized (make-hash-table))
    (pollux--tell t)
    (pollux--tell-folders)
    (let ((mine pollux--connection))
      (run-at-time 5 nil (lambda ()
                           (when (eq mine pollux--connection)
                             (setq pollux--failures 0)))))))

(defun pollux--ended (connection)
  "Start the companion again when CONNECTION ended unasked."
  (when (eq connection pollux--connection)
    (setq pollux--connection nil pollux--ready nil pollux--status nil)
    (when pollux-mode
      ;; The views stay: the companion that comes back hears of them.
      (cl-incf pollux--failures)
      (when (= pollux--failures 4)
        (pollux--complain "the companion keeps ending; see %s" " *pollux stderr*"))
      (run-at-time (min 30 (* 0.2 (expt 2 (1- (min pollux--failures 9))))) nil
                   (lambda ()
                     (when (and pollux-mode (not pollux--connection))
                       (pollux--start)))))))

(defun pollux--stop ()
  "Stop the companion in good order; it rejects what is open."
  (let ((connection pollux--connection))
    (setq pollux--connection nil pollux--ready nil)
    (when (and connection (jsonrpc-running-p connection))
      (ignore-errors (jsonrpc-request connection :shutdown nil :timeout 1))
      (ignore-errors (jsonrpc-notify connection :exit nil))
      (with-timeout (1 nil)
        (while (jsonrpc-running-p connection)
          (accept-process-output nil 0.01))))
    (mapc #'setenv pollux--environment)
    (setq pollux--environment nil)
    (mapc #'pollux--finish (copy-sequence pollux--diffs))))

(defun pollux--request (_connection method params)
  "Answer the companion's request METHOD with PARAMS."
  (pcase method
    ('pollux/openDiff (pollux--open-diff params))
    ('pollux/closeDiff (pollux--close-diff params))
    ('pollux/openDocument (pollux--open-document params))
    ('pollux/ask (pollux--ask params))
    (_ (jsonrpc-error :code -32601 :message (format "the plugin does not know %s" method)))))

(defun pollux--notification (_connection method params)
  "Take the companion's notification METHOD with PARAMS."
  (pcase method
    ('pollux/didChangeEnv (pollux--equip (plist-get params :set) (append (plist-get params :unset) nil)))
    ('pollux/didChangeStatus (setq pollux--status params) (force-mode-line-update t))
    ('window/showMessage
     (if (eql (plist-get params :type) 1)
         (pollux--complain "%s" (plist-get params :message))
       (message "%s" (plist-get params :message))))))

(defun pollux--open-document (params)
  "Show the file of PARAMS."
  (let* ((uri (plist-get params :uri))
         (path (decode-coding-string (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8))
         (buffer (find-file-noselect path t)))
    (when (and (eq (plist-get params :takeFocus) t) (not (active-minibuffer-window)))
      (pop-to-buffer buffer)
      (when-let ((start (plist-get (plist-get params :selection) :start)))
        (goto-char (point-min))
        (forward-line (plist-get start :line))))
    '(:opened t)))

(defun pollux--ask (params)
  "Put the question of PARAMS to the user."
  (when (active-minibuffer-window)
    (jsonrpc-error :code -32001 :message "busy: the minibuffer is in use"))
  (let ((choice (with-local-quit
                  (completing-read (format "%s: %s " (plist-get params :title) (plist-get params :message))
                                   (append (plist-get params :choices) nil) nil t))))
    (list :choice (and choice (not (string-empty-p choice)) choice))))

;;;; What the user looks at

(defvar pollux--timer nil "The timer of the next context, nil when none is due.")
(defvar pollux--files nil "The open files as URIs; t when they must be looked for.")
(defvar-local pollux-cli-buffer nil "Non-nil in the CLI's own terminal: the last file stays active there.")

(defun pollux--file (buffer)
  "Return the path that BUFFER visits, nil when it is none of the user's files."
  (when-let ((path (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (and (not (file-remote-p path))
         (not (string-match-p "/\\.git/" path))
         (file-regular-p path)
         (expand-file-name path))))

(defun pollux--open-files ()
  "Return the URIs of the open files."
  (when (eq pollux--files t)
    (setq pollux--files
          (vconcat (delq nil (mapcar (lambda (buffer)
                                       (when-let ((path (pollux--file buffer)))
                                         (pollux--uri path)))
                                     (buffer-list))))))
  pollux--files)

(defun pollux--units (string)
  "Return the number of UTF-16 units of STRING."
  (let ((n (length string)))
    (unless (= n (string-bytes string))
      (mapc (lambda (c) (when (<= #x10000 c #x10ffff) (cl-incf n))) string))
    n))

(defun pollux--position (point)
  "Return POINT as LSP has it."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char point)
      (list :line (1- (line-number-at-pos nil t))
            :character (pollux--units (buffer-substring-no-properties (line-beginning-position) point))))))

(defun pollux--selection ()
  "Return the active region of the current buffer, nil when there is none."
  (when (use-region-p)
    (let* ((start (region-beginning)) (end (region-end))
           (text (if (bound-and-true-p rectangle-mark-mode)
                     (string-join (mapcar #'substring-no-properties (extract-rectangle start end)) "\n")
                   (buffer-substring-no-properties start (min end (+ start pollux--limit))))))
      (unless (string-empty-p text)
        (list :start (pollux--position start) :end (pollux--position end)
              :text (pollux--sayable text))))))

(defun pollux--sayable (text)
  "Return TEXT with what JSON cannot carry replaced."
  (if (string-match-p "[^\0-\x10ffff]" text)
      (replace-regexp-in-string "[^\0-\x10ffff]" "\ufffd" text t t)
    text))

(defun pollux--terminal-of-cli (buffer)
  "Return non-nil when BUFFER is the terminal of the CLI."
  (or (buffer-local-value 'pollux-cli-buffer buffer)
      (and (memq (buffer-local-value 'major-mode buffer) '(term-mode vterm-mode eat-mode))
           (let ((case-fold-search t))
             (string-match-p "gemini" (buffer-name buffer))))))

(defun pollux--context (&optional first)
  "Return what there is to tell now, nil when nothing is.
With FIRST, in the CLI's terminal, what is told is the file that the user was
in before: a companion that has just started knows of none."
  (let* ((window (selected-window))
         (buffer (window-buffer window)))
    (when (and first (or (minibufferp buffer) (pollux--terminal-of-cli buffer)))
      (setq buffer (or (cl-find-if #'pollux--file (buffer-list)) buffer)
            window (get-buffer-window buffer)))
    (unless (or (minibufferp buffer) (pollux--terminal-of-cli buffer))
      (let ((path (pollux--file buffer)))
        (if (not path)
            (list :textDocument nil :openDocuments (pollux--open-files))
          (with-current-buffer buffer
            (let ((selection (pollux--selection)))
              (append
               (list :textDocument (list :uri (pollux--uri path))
                     :position (pollux--position (if window (window-point window) (point)))
                     :openDocuments (pollux--open-files))
               (and selection (list :selection selection))))))))))

(defun pollux--tell (&optional first)
  "Tell the context unless it is the last one; see `pollux--context' for FIRST."
  (setq pollux--timer nil)
  (when pollux--ready
    (when-let ((context (pollux--context first)))
      (unless (equal context pollux--last)
        (setq pollux--last context)
        (pollux--notify :pollux/didChangeContext context)))))

(defun pollux--touch (&rest _)
  "Tell the context 50 ms after the first of several events."
  (when (and pollux--ready (not pollux--timer))
    (setq pollux--timer (run-at-time 0.05 nil #'pollux--tell))))

(defun pollux--touch-files (&rest _)
  "Likewise, when files may have come or gone."
  (setq pollux--files t)
  (pollux--touch))

(defun pollux--touch-folders (&rest _)
  "Likewise, when folders may have."
  (pollux--touch-files)
  (run-at-time 0.1 nil #'pollux--tell-folders))

(defun pollux--find-roots ()
  "Return the projects' folders.
Those of all open files, and the one that Emacs was started in."
  (let (roots)
    (cl-flet ((add (dir)
                (setq dir (file-truename (directory-file-name (expand-file-name dir))))
                (unless (cl-some (lambda (root) (file-in-directory-p dir root)) roots)
                  (setq roots (append (cl-remove-if (lambda (root) (file-in-directory-p root dir)) roots)
                                      (list dir))))))
      (dolist (buffer (buffer-list))
        (when-let* ((path (pollux--file buffer))
                    (root (locate-dominating-file path ".git")))
          (add root)))
      (let ((start command-line-default-directory))
        (when (and start (file-directory-p start)
                   (or (not roots)
                       (not (member (file-name-as-directory (expand-file-name start))
                                    (list "/" (file-name-as-directory (expand-file-name "~")))))))
          (add (or (locate-dominating-file start ".git") start)))))
    roots))

(defun pollux--tell-folders ()
  "Tell which folders came and went."
  (when pollux--ready
    (let* ((now (pollux--find-roots))
           (added (cl-set-difference now pollux--roots :test #'equal))
           (removed (cl-set-difference pollux--roots now :test #'equal)))
      (when (or added removed)
        (setq pollux--roots now)
        (pollux--notify :workspace/didChangeWorkspaceFolders
                        (list :event (list :added (pollux--folders added)
                                           :removed (pollux--folders removed))))))))

;;;; Diffs

(cl-defstruct (pollux--diff (:constructor pollux--make-diff))
  id path title old new          ; as proposed
  left right control             ; buffers, nil while it waits
  shape                          ; of the proposal, see `pollux--fill'
  tick                           ; of the right buffer when nobody had edited it
  windows                        ; the window configuration before
  held timer)

(defvar pollux--waiter nil "The timer that opens a diff when the user pauses.")
(defvar-local pollux--id nil "The diff that a buffer belongs to.")

(defun pollux--find (id)
  "Return the diff with ID."
  (cl-find id pollux--diffs :key #'pollux--diff-id :test #'equal))

(defun pollux--fill (text)
  "Fill the current buffer with TEXT; return its shape for `pollux--text'.
Only where every line ends in CR LF are they left out."
  (let* ((mark (string-prefix-p "\ufeff" text))
         (body (if mark (substring text 1) text))
         (dos (and (string-match-p "\r\n" body)
                   (not (string-match-p "\\(?:\\`\\|[^\r]\\)\n" body)))))
    (erase-buffer)
    (insert (if dos (pollux--unix body) body))
    (list mark dos)))

(defun pollux--unix (text)
  "Return TEXT with LF for CR LF."
  (replace-regexp-in-string "\r\n" "\n" text t t))

(defun pollux--text (diff)
  "Return the text of DIFF as it is now, byte for byte."
  (let ((buffer (pollux--diff-right diff)))
    (if (or (not (buffer-live-p buffer))
            (equal (buffer-chars-modified-tick buffer) (pollux--diff-tick diff)))
        (pollux--diff-new diff)
      (with-current-buffer buffer
        (save-restriction
          (widen)
          (let ((text (buffer-substring-no-properties (point-min) (point-max))))
            (pcase-let ((`(,mark ,dos) (pollux--diff-shape diff)))
              (concat (and mark "\ufeff")
                      (if dos (replace-regexp-in-string "\n" "\r\n" text t t) text)))))))))

(defun pollux--announcement (diff)
  "Return DIFF as a companion that has come back wants to hear of it."
  (list :diffId (pollux--diff-id diff) :filePath (pollux--diff-path diff)
        :content (pollux--sayable (pollux--text diff))))

(defun pollux--unsaved (path)
  "Return the buffer of PATH when it has unsaved changes."
  (when-let ((buffer (find-buffer-visiting path)))
    (and (buffer-modified-p buffer) buffer)))

(defvar pollux-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'pollux-accept)
    (define-key map (kbd "C-c C-k") #'pollux-reject)
    (define-key map [remap save-buffer] #'pollux-accept)
    map)
  "The keys in both sides of a diff.")

(define-minor-mode pollux-diff-mode
  "A side of a diff of pollux's: \\<pollux-diff-mode-map>\\[pollux-accept] accepts, \\[pollux-reject] rejects."
  :lighter " Pollux"
  :keymap pollux-diff-mode-map
  (when pollux-diff-mode
    (add-hook 'kill-buffer-hook #'pollux--killed nil t)))

(defun pollux--side (diff side text)
  "Return a buffer with TEXT for SIDE of DIFF, and its shape."
  (let ((buffer (generate-new-buffer (format "%s <%s>" (file-name-nondirectory (pollux--diff-path diff)) side)))
        shape)
    (with-current-buffer buffer
      (buffer-disable-undo)
      (setq shape (pollux--fill text))
      (let ((buffer-file-name (pollux--diff-path diff))
            (enable-local-variables nil)
            (inhibit-message t))
        (ignore-errors (delay-mode-hooks (set-auto-mode t))))
      (setq buffer-file-name nil
            pollux--id (pollux--diff-id diff))
      (ignore-errors (font-lock-mode 1))
      (buffer-enable-undo)
      (pollux-diff-mode 1)
      (goto-char (point-min))
      (set-buffer-modified-p nil))
    (cons buffer shape)))

(defun pollux--killed ()
  "Reject the diff whose buffer is killed."
  (when-let ((diff (pollux--find pollux--id)))
    (pollux--resolve diff "rejected")))

(defun pollux--changed (&rest _)
  "Report the text as it is edited, every 200 ms at the most."
  (when-let ((diff (pollux--find pollux--id)))
    (unless (pollux--diff-timer diff)
      (setf (pollux--diff-timer diff)
            (run-at-time 0.2 nil
                         (lambda ()
                           (setf (pollux--diff-timer diff) nil)
                           (when (and (memq diff pollux--diffs) (buffer-live-p (pollux--diff-right diff)))
                             (ignore-errors
                               (pollux--notify :pollux/didChangeDiff
                                               (list :diffId (pollux--diff-id diff)
                                                     :version (buffer-chars-modified-tick (pollux--diff-right diff))
                                                     :content (pollux--text diff)))))))))))

(defun pollux--show (diff)
  "Show DIFF now, in Ediff."
  (require 'ediff)
  (setf (pollux--diff-windows diff) (current-window-configuration))
  (let ((left (pollux--side diff "before" (pollux--diff-old diff)))
        (right (pollux--side diff "proposal" (pollux--diff-new diff))))
    (setf (pollux--diff-left diff) (car left)
          (pollux--diff-right diff) (car right)
          (pollux--diff-shape diff) (cdr right)
          (pollux--diff-tick diff) (buffer-chars-modified-tick (car right)))
    (with-current-buffer (car left) (setq buffer-read-only t))
    (with-current-buffer (car right) (add-hook 'after-change-functions #'pollux--changed nil t))
    (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
          (ediff-split-window-function #'split-window-horizontally)
          (inhibit-message t))
      (setf (pollux--diff-control diff)
            (ediff-buffers (car left) (car right)
                           (list (lambda ()
                                   (setq-local ediff-window-setup-function #'ediff-setup-windows-plain)
                                   (setq-local ediff-split-window-function #'split-window-horizontally)
                                   (setq pollux--id (pollux--diff-id diff))
                                   (local-set-key "q" #'pollux-reject)
                                   (local-set-key (kbd "C-c C-c") #'pollux-accept)
                                   (local-set-key (kbd "C-c C-k") #'pollux-reject)
                                   (add-hook 'kill-buffer-hook #'pollux--killed nil t))))))
    (select-window (get-buffer-window (car right)))
    (message "[pollux] %s: C-c C-c accepts, C-c C-k rejects%s%s" (pollux--diff-title diff)
             (if (cdr pollux--diffs) (format ", %d more wait" (1- (length pollux--diffs))) "")
             (if (pollux--unsaved (pollux--diff-path diff))
                 "; your unsaved changes of it are kept, and not in this diff" ""))))

(defun pollux--hide (diff)
  "Take the view of DIFF away and put the user back."
  (let ((control (pollux--diff-control diff))
        (here (cl-some (lambda (buffer) (and (buffer-live-p buffer) (get-buffer-window buffer)))
                       (list (pollux--diff-right diff) (pollux--diff-left diff) (pollux--diff-control diff)))))
    (when (buffer-live-p control)
      (with-current-buffer control
        (remove-hook 'kill-buffer-hook #'pollux--killed t)
        (let ((inhibit-message t))
          (ignore-errors (ediff-really-quit nil)))))
    (dolist (buffer (list control (pollux--diff-right diff) (pollux--diff-left diff)))
      (when (buffer-live-p buffer)
        (with-current-buffer buffer (set-buffer-modified-p nil))
        (kill-buffer buffer)))
    (when (and (pollux--diff-windows diff) here)
      (set-window-configuration (pollux--diff-windows diff)))))

(defun pollux--finish (diff)
  "End DIFF: it is out of the queue before anything is closed.
Return nil when it had ended before."
  (when (memq diff pollux--diffs)
    (setq pollux--diffs (delq diff pollux--diffs))
    (when (pollux--diff-right diff)
      (run-at-time 0 nil (lambda ()
                           (pollux--hide diff)
                           (pollux--touch-files))))
    (run-at-time 0 nil #'pollux--pump)
    t))

(defun pollux--resolve (diff outcome &optional content)
  "End DIFF with OUTCOME and CONTENT, and tell the companion."
  (when (pollux--finish diff)
    (pollux--notify :pollux/diffResolved
                    (append (list :diffId (pollux--diff-id diff) :outcome outcome)
                            (and content (list :content content))))))

(defun pollux--follow (path)
  "Show in the buffer of PATH what the CLI writes, as soon as it has."
  (let ((tries 0) timer)
    (setq timer
          (run-at-time
           0.1 0.1
           (lambda ()
             (let ((buffer (find-buffer-visiting path)))
               (cond
                ((or (> (cl-incf tries) 100) (not buffer)) (cancel-timer timer) (pollux--touch-files))
                ((verify-visited-file-modtime buffer))
                ((buffer-modified-p buffer)
                 (cancel-timer timer)
                 (message "[pollux] %s was written by the CLI; your unsaved changes are kept"
                          (file-name-nondirectory path)))
                (t
                 (with-current-buffer buffer
                   (let ((inhibit-message t))
                     (revert-buffer t t t)))))))))))

(defun pollux--idle-p ()
  "Return non-nil when the user would not mind a diff on the screen now."
  (and (not (active-minibuffer-window))
       (= (recursion-depth) 0)
       (pcase pollux-focus
         ('now t)
         ('idle (when-let ((idle (current-idle-time)))
                  (>= (float-time idle) pollux-idle))))))

(defun pollux--visible-p (diff)
  "Return non-nil when DIFF has its buffers."
  (buffer-live-p (pollux--diff-right diff)))

(defun pollux--pump ()
  "Show the oldest diff when none is on show and the user pauses."
  (setq pollux--waiter (and (timerp pollux--waiter) (memq pollux--waiter timer-list) pollux--waiter))
  (let ((diff (car pollux--diffs)))
    (when (and diff (not (cl-some #'pollux--visible-p pollux--diffs)) (not (pollux--diff-held diff)))
      (cond
       ((pollux--idle-p)
        (condition-case err
            (pollux--show diff)
          (error (setf (pollux--diff-held diff) t)
                 (pollux--complain "a diff cannot be shown: %s (try M-x pollux-review)" (error-message-string err)))))
       ((and (not (eq pollux-focus 'never)) (not pollux--waiter))
        (setq pollux--waiter (run-at-time 0.1 nil #'pollux--pump)))))))

(defun pollux--open-diff (params)
  "Take the proposal of PARAMS into the queue."
  (when-let ((known (pollux--find (plist-get params :diffId))))
    (pollux--finish known))
  (let ((diff (pollux--make-diff
               :id (plist-get params :diffId) :path (plist-get params :filePath)
               :title (plist-get params :title)
               :old (plist-get params :oldText) :new (plist-get params :newText))))
    (setq pollux--diffs (append pollux--diffs (list diff)))
    (run-at-time 0 nil (lambda ()
                         (pollux--pump)
                         (unless (pollux--visible-p diff)
                           (message "[pollux] %s waits: M-x pollux-review shows it" (pollux--diff-title diff)))))
    (list :opened t :bufferModified (if (pollux--unsaved (pollux--diff-path diff)) t :json-false))))

(defun pollux--close-diff (params)
  "Take back the diff of PARAMS and return its text."
  (let ((diff (pollux--find (plist-get params :diffId))))
    (unless diff
      (jsonrpc-error :code -32602 :message "no such diff"))
    (let ((text (pollux--text diff)))
      (unless (pollux--exact-p text)
        (setq text (pollux--diff-new diff)))
      (pollux--finish diff)
      (unless (equal (plist-get params :outcome) "rejected")
        (pollux--follow (pollux--diff-path diff)))
      (list :content text))))

(defun pollux--exact-p (text)
  "Return non-nil when JSON can carry TEXT as it is."
  (not (string-match-p "[^\0-\x10ffff]" text)))

;;;; Commands

(defun pollux--chosen ()
  "Return the diff that a command is about."
  (or (pollux--find pollux--id)
      (cl-find-if #'pollux--visible-p pollux--diffs)
      (car pollux--diffs)
      (user-error "No diff is open")))

(defun pollux--check-ready ()
  "Signal an error unless the companion runs."
  (unless pollux--ready
    (user-error "The companion does not run; M-x pollux-mode starts it")))

;;;###autoload
(defun pollux-accept ()
  "Accept the diff on show with its text as it is now."
  (interactive)
  (let* ((diff (pollux--chosen)) (text (pollux--text diff)))
    (cond
     ((not (pollux--exact-p text))
      (user-error "The proposal holds bytes that are not Unicode; it cannot be accepted like this"))
     ((and (string-empty-p text) (not (string-empty-p (pollux--diff-new diff))))
      (user-error "An emptied proposal cannot be accepted: the CLI would write its own text; reject it instead"))
     (t
      (pollux--resolve diff "accepted" text)
      (pollux--follow (pollux--diff-path diff))))))

;;;###autoload
(defun pollux-reject ()
  "Reject the diff on show."
  (interactive)
  (pollux--resolve (pollux--chosen) "rejected"))

(defun pollux-accept-all (file)
  "Accept the diff on show and all that follow from its session.
With a prefix argument FILE, all that follow for its file."
  (interactive "P")
  (pollux--check-ready)
  (let ((diff (pollux--chosen)))
    (jsonrpc-async-request
     pollux--connection :workspace/executeCommand
     (list :command "pollux.setPolicy"
           :arguments (vector (list :policy "accept" :scope (if file "file" "session") :diffId (pollux--diff-id diff))))
     ;; This one with its edits; the rule decides only what nobody edited.
     :success-fn (lambda (_) (when (memq diff pollux--diffs) (pollux--resolve diff "accepted" (pollux--text diff))))
     :error-fn (lambda (err) (pollux--complain "%s" (plist-get err :message))))))

;;;###autoload
(defun pollux-review ()
  "Show the oldest diff that waits."
  (interactive)
  (let ((diff (pollux--chosen)))
    (setf (pollux--diff-held diff) nil)
    (if (pollux--visible-p diff)
        (pop-to-buffer (pollux--diff-right diff))
      (pollux--show diff))))

;;;###autoload
(defun pollux-run ()
  "Start Gemini CLI, `pollux-cli', in a terminal of Emacs's."
  (interactive)
  (unless (executable-find pollux-cli)
    (user-error "There is no program %s; install Gemini CLI: npm install -g @google/gemini-cli" pollux-cli))
  (require 'term)
  (let ((buffer (make-term "gemini" pollux-cli)))
    (with-current-buffer buffer
      (term-mode)
      (term-char-mode)
      (setq pollux-cli-buffer t))
    (pop-to-buffer buffer)))

(defun pollux-send ()
  "Type a mention of this file, with the region's lines, into the CLI's terminal."
  (interactive)
  (let ((path (or (pollux--file (current-buffer)) (user-error "This buffer is no file on disk")))
        (terminal (or (cl-find-if (lambda (buffer)
                                    (and (buffer-local-value 'pollux-cli-buffer buffer) (get-buffer-process buffer)))
                                  (buffer-list))
                      (user-error "No CLI runs here; start one with M-x pollux-run"))))
    (process-send-string
     (get-buffer-process terminal)
     (concat "@" (replace-regexp-in-string "[[:blank:]\\]" "\\\\\\&" (file-relative-name path (buffer-local-value 'default-directory terminal)))
             (if (use-region-p)
                 (format " lines %d-%d " (line-number-at-pos (region-beginning)) (line-number-at-pos (region-end)))
               " ")))))

(defun pollux-status ()
  "Tell the state of the companion."
  (interactive)
  (if (not pollux--ready)
      (message "[pollux] the companion does not run%s" (if pollux--error (concat ": " pollux--error) ""))
    (message "[pollux] port %s, %d CLIs, %d diffs wait%s" (getenv "GEMINI_CLI_IDE_SERVER_PORT")
             (length (plist-get pollux--status :sessions)) (or (plist-get pollux--status :pendingDiffs) 0)
             (if pollux--error (concat "; last error: " pollux--error) ""))))

(defun pollux-mode-line ()
  "Return a few characters for the mode line."
  (if (not pollux--ready) " Pollux:-"
    (let ((waiting (or (plist-get pollux--status :pendingDiffs) 0)))
      (format " Pollux:%d%s" (length (plist-get pollux--status :sessions))
              (if (> waiting 0) (format "±%d" waiting) "")))))

(defconst pollux--hooks
  '((post-command-hook . pollux--touch)
    (window-selection-change-functions . pollux--touch)
    (window-buffer-change-functions . pollux--touch-files)
    (find-file-hook . pollux--touch-folders)
    (after-save-hook . pollux--touch-folders)
    (after-set-visited-file-name-hook . pollux--touch-folders)
    (after-revert-hook . pollux--touch-files)
    (buffer-list-update-hook . pollux--forget-files)
    (kill-emacs-hook . pollux--stop))
  "What the mode listens to.")

(defun pollux--forget-files ()
  "Note that buffers came or went."
  (setq pollux--files t))

;;;###autoload
(define-minor-mode pollux-mode
  "Make Emacs an IDE for Gemini CLI."
  :global t
  :lighter (:eval (pollux-mode-line))
  (pcase-dolist (`(,hook . ,function) pollux--hooks)
    (if pollux-mode (add-hook hook function) (remove-hook hook function)))
  (if (not pollux-mode)
      (pollux--stop)
    (setq pollux--failures 0 pollux--files t)
    (unless pollux--connection
      ;; After the first screen.
      (run-with-idle-timer 0.02 nil #'pollux--start-wanted))))

(defun pollux--start-wanted ()
  "Start the companion if the mode is still on."
  (when (and pollux-mode (not pollux--connection))
    (pollux--start)))

(provide 'pollux)
;;; pollux.el ends here
