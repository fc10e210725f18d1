;;; pollux-diff.el --- The CLI's proposals in Ediff  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; One proposal is on show at a time, the others wait in a queue.  The buffers
;; of both sides are pollux's own: your buffer of the file is not touched
;; before the CLI has written it.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'pollux-rpc)
(require 'pollux-context)
(require 'pollux-reload)

(declare-function ediff-really-quit "ediff-util")
(declare-function ediff-get-diff-posn "ediff-util")
(declare-function ediff-next-difference "ediff-util")
(declare-function ediff-recenter "ediff-util")
(declare-function ediff-setup-windows-plain "ediff-wind")
(defvar ediff-cleanup-hook)
(defvar ediff-diff-program)
(defvar ediff-grab-mouse)
(defvar ediff-keep-variants)
(defvar ediff-make-buffers-readonly-at-startup)
(defvar ediff-number-of-differences)
(defvar ediff-quit-hook)
(defvar ediff-registry-buffer)
(defvar ediff-session-registry)
(defvar ediff-split-window-function)
(defvar ediff-window-setup-function)

(defcustom pollux-focus 'idle
  "When a diff or a question may take the screen.
At once, when you pause (see `pollux-idle'), or never: then
\\[pollux-review] shows it."
  :type '(choice (const :tag "at once" now) (const :tag "when I pause" idle) (const :tag "never" never))
  :group 'pollux)

(defcustom pollux-idle 1.0
  "How many seconds without input are a pause."
  :type 'number
  :group 'pollux)

(defcustom pollux-select 'proposal
  "Which window of a diff is selected when it comes up.
After a decision in Ediff's control panel it is the panel all the same, so
that one who goes through several diffs by Ediff's keys stays with them."
  :type '(choice (const :tag "the proposal" proposal) (const :tag "Ediff's control panel" panel))
  :group 'pollux)

(defcustom pollux-diff-hook nil
  "Run in the proposal's buffer when a diff is on show."
  :type 'hook
  :group 'pollux)

(defface pollux-header '((t :inherit header-line))
  "The line above a proposal."
  :group 'pollux)

(defface pollux-key '((t :inherit (font-lock-keyword-face header-line)))
  "The keys in that line."
  :group 'pollux)

(defface pollux-warning '((t :inherit (warning header-line)))
  "What is urgent in that line."
  :group 'pollux)

(defvar pollux-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'pollux-accept)
    (define-key map (kbd "C-c C-k") #'pollux-reject)
    (define-key map [remap save-buffer] #'pollux-accept)
    map)
  "The keys in both sides of a diff.")

(defvar pollux-diff-control-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'pollux-accept)
    (define-key map (kbd "C-c C-k") #'pollux-reject)
    (define-key map "q" #'pollux-reject)
    map)
  "The keys in the control panel of a diff, besides Ediff's own.")

;;;; The queue

(cl-defstruct (pollux--diff (:constructor pollux--make-diff))
  id path title old new          ; as proposed
  text                           ; as edited, while it is not on show; nil for new
  left right control             ; buffers, nil while it waits
  shape                          ; of the proposal, see `pollux--fill'
  tick                           ; of the right buffer when nobody had edited it
  windows                        ; the window configuration before, and the buffers shown before
  held                           ; it waits for `pollux-review'
  timer)                         ; of the next report of an edit

(defvar pollux--diffs nil "The diffs that wait for a decision, oldest first.")
(defvar pollux--from-panel nil "Non-nil when the queue's last decision was made in a control panel.")
(defvar pollux--waiter nil "The timer that opens a diff when the user pauses.")
(defvar-local pollux--id nil "The diff that a buffer belongs to.")

(defun pollux--find (id)
  "Return the diff with ID."
  (and id (cl-find id pollux--diffs :key #'pollux--diff-id :test #'equal)))

(defun pollux--visible-p (diff)
  "Return non-nil when DIFF has its buffers."
  (buffer-live-p (pollux--diff-right diff)))

(defun pollux--unsaved (path)
  "Return the buffer of PATH when it has unsaved changes."
  (when-let ((buffer (find-buffer-visiting path)))
    (and (buffer-modified-p buffer) buffer)))

;;;; Texts

(defun pollux--unix (text)
  "Return TEXT with LF for CR LF."
  (replace-regexp-in-string "\r\n" "\n" text t t))

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

(defun pollux--text (diff)
  "Return the text of DIFF as it is now, byte for byte."
  (let ((buffer (pollux--diff-right diff)))
    (if (or (not (buffer-live-p buffer))
            (equal (buffer-chars-modified-tick buffer) (pollux--diff-tick diff)))
        (or (pollux--diff-text diff) (pollux--diff-new diff))
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

(defun pollux--changed (&rest _)
  "Report the text as it is edited, every 200 ms at the most."
  (when-let ((diff (pollux--find pollux--id)))
    (unless (pollux--diff-timer diff)
      (setf (pollux--diff-timer diff) (run-at-time 0.2 nil #'pollux--report-edit diff)))))

(defun pollux--report-edit (diff)
  "Report the text of DIFF as it is now."
  (when (timerp (pollux--diff-timer diff))
    (cancel-timer (pollux--diff-timer diff)))
  (setf (pollux--diff-timer diff) nil)
  (when (and (memq diff pollux--diffs) (pollux--visible-p diff))
    (ignore-errors
      (pollux--at-once
        (pollux--notify "pollux/didChangeDiff"
                        (list :diffId (pollux--diff-id diff)
                              :version (buffer-chars-modified-tick (pollux--diff-right diff))
                              :content (pollux--text diff)))))))

;;;; The view

(defun pollux--header ()
  "Return the line above a side of a diff."
  (when-let ((diff (pollux--find pollux--id)))
    (let ((waiting (1- (length pollux--diffs)))
          (key (lambda (command)
                 (propertize (substitute-command-keys (format "\\<pollux-diff-mode-map>\\[%s]" command))
                             'face 'pollux-key))))
      (concat " " (funcall key 'pollux-accept) " accept  " (funcall key 'pollux-reject) " reject"
              (if (> waiting 0) (format "  (%d more)" waiting) "")
              (if (pollux--unsaved (pollux--diff-path diff))
                  (concat "  " (propertize "your unsaved changes of this file are kept, and not in this diff"
                                           'face 'pollux-warning))
                "")))))

(define-minor-mode pollux-diff-mode
  "A side of a diff of pollux's.
\\<pollux-diff-mode-map>\\[pollux-accept] accepts, \\[pollux-reject] rejects."
  :lighter " Pollux"
  :keymap pollux-diff-mode-map
  (when pollux-diff-mode
    (setq header-line-format '(:propertize (:eval (pollux--header)) face pollux-header))
    (add-hook 'kill-buffer-hook #'pollux--killed nil t)
    (add-hook 'write-contents-functions #'pollux--saved nil t)))

(defun pollux--killed ()
  "Reject the diff whose buffer is killed."
  (when-let ((diff (pollux--find pollux--id)))
    (pollux--resolve diff "rejected")))

(defun pollux--saved ()
  "Accept when the user saved by hand; what saves by itself does nothing."
  (when (memq this-command '(save-buffer evil-write evil-save-and-close evil-save-modified-and-close))
    (pollux-accept))
  t)

(defun pollux--side (diff side text)
  "Return a buffer with TEXT for SIDE of DIFF, and its shape."
  (let ((buffer (generate-new-buffer (format "%s <%s>" (file-name-nondirectory (pollux--diff-path diff)) side)))
        shape)
    (with-current-buffer buffer
      (buffer-disable-undo)
      (setq shape (pollux--fill text)
            default-directory (let ((dir (file-name-directory (pollux--diff-path diff))))
                                (if (file-directory-p dir) dir default-directory)))
      (let ((buffer-file-name (pollux--diff-path diff))
            (enable-local-variables nil)
            (inhibit-message t))
        (ignore-errors (delay-mode-hooks (set-auto-mode t))))
      (setq buffer-file-name nil
            buffer-read-only nil
            pollux--id (pollux--diff-id diff))
      (ignore-errors (font-lock-mode 1))
      (buffer-enable-undo)
      (pollux-diff-mode 1)
      (goto-char (point-min))
      (set-buffer-modified-p nil))
    (cons buffer shape)))

(defun pollux--panel (diff)
  "Return what sets up the control panel of DIFF."
  (lambda ()
    (setq-local ediff-window-setup-function #'ediff-setup-windows-plain)
    (setq-local ediff-split-window-function #'split-window-horizontally)
    (setq pollux--id (pollux--diff-id diff))
    (use-local-map (make-composed-keymap pollux-diff-control-map (current-local-map)))
    (add-hook 'kill-buffer-hook #'pollux--killed nil t)))

(defun pollux--leave-side-window ()
  "Select a window that may be split: not a dedicated one at a side."
  (when (window-parameter nil 'window-side)
    (when-let ((window (get-window-with-predicate
                        (lambda (w) (not (window-parameter w 'window-side))))))
      (select-window window))))

(defun pollux--show (diff)
  "Show DIFF now, in Ediff."
  (require 'ediff)
  (pollux--note-terminals)
  (setf (pollux--diff-windows diff) (pollux--windows)
        (pollux--diff-held diff) nil)
  (let ((left (pollux--side diff "before" (pollux--diff-old diff)))
        (right (pollux--side diff "proposal" (pollux--text diff))))
    (setf (pollux--diff-left diff) (car left)
          (pollux--diff-right diff) (car right)
          (pollux--diff-shape diff) (cdr right)
          (pollux--diff-tick diff) (and (not (pollux--diff-text diff))
                                        (buffer-chars-modified-tick (car right))))
    (with-current-buffer (car left) (setq buffer-read-only t))
    (with-current-buffer (car right) (add-hook 'after-change-functions #'pollux--changed nil t))
    (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
          (ediff-split-window-function #'split-window-horizontally)
          (ediff-make-buffers-readonly-at-startup nil)
          (inhibit-message t))
      (condition-case err
          (progn
            (pollux--leave-side-window)
            (setf (pollux--diff-control diff)
                  (pollux--at-once
                    (ediff-buffers (car left) (car right) (list (pollux--panel diff))))))
        (error
         (setf (pollux--diff-right diff) nil (pollux--diff-left diff) nil)
         (dolist (buffer (list (car left) (car right)))
           (with-current-buffer buffer (setq pollux--id nil))
           (kill-buffer buffer))
         (pollux--restore (pollux--diff-windows diff))
         (signal (car err) (cdr err)))))
    (select-window (get-buffer-window (car right)))
    (pollux--first-change diff)
    (run-hooks 'pollux-diff-hook)
    (when (or pollux--from-panel (eq pollux-select 'panel))
      (select-window (or (get-buffer-window (pollux--diff-control diff)) (selected-window))))
    (message "[pollux] %s: %s accepts, %s rejects%s%s" (pollux--diff-title diff)
             (substitute-command-keys "\\<pollux-diff-mode-map>\\[pollux-accept]")
             (substitute-command-keys "\\<pollux-diff-mode-map>\\[pollux-reject]")
             (if (cdr pollux--diffs) (format ", %d more wait" (1- (length pollux--diffs))) "")
             (if (pollux--unsaved (pollux--diff-path diff))
                 "; your unsaved changes of it are kept, and not in this diff" ""))))

(defun pollux--first-change (diff)
  "Go to the first change of DIFF, in both sides and in Ediff's count."
  (let* ((control (pollux--diff-control diff))
         (window (get-buffer-window control))
         (inhibit-message t))
    (when (and window (> (buffer-local-value 'ediff-number-of-differences control) 0))
      (with-demoted-errors "[pollux] %S"
        (with-selected-window window ; where Ediff looks for its buffers
          (ediff-next-difference))
        ;; It may have set up its windows anew.
        (select-window (or (get-buffer-window (pollux--diff-right diff)) (selected-window)))
        (goto-char (ediff-get-diff-posn 'B 'beg nil control))))))

(defun pollux--buffers (diff)
  "Return the live buffers of the view of DIFF."
  (cl-remove-if-not #'buffer-live-p
                    (list (pollux--diff-control diff) (pollux--diff-right diff) (pollux--diff-left diff))))

(defvar-local pollux--at-output nil
  "Non-nil in a terminal whose cursor followed its output when a diff was shown.")

(defun pollux--note-terminals ()
  "Remember which terminals' cursors follow their output."
  (dolist (window (window-list nil 'no-minibuffer))
    (with-current-buffer (window-buffer window)
      (when-let ((process (get-buffer-process (current-buffer))))
        (setq pollux--at-output (and (markerp (process-mark process))
                                     (equal (marker-position (process-mark process)) (window-point window))))))))

(defun pollux--windows ()
  "Return the windows of this frame as they are, for `pollux--restore'."
  (cons (current-window-configuration)
        (mapcar (lambda (window)
                  (list window (window-prev-buffers window) (window-next-buffers window)))
                (window-list nil 'no-minibuffer))))

(defun pollux--frame-of (windows)
  "Return the frame of WINDOWS, nil when it has been closed."
  (let ((frame (and windows (window-configuration-frame (car windows)))))
    (and (frame-live-p frame) frame)))

(defun pollux--restore (windows)
  "Put WINDOWS, as `pollux--windows' returned them, back.
Terminals go on where their output has come to since."
  (set-window-configuration (car windows))
  (pcase-dolist (`(,window ,before ,after) (cdr windows))
    (when (window-live-p window)
      (set-window-prev-buffers window (cl-remove-if-not #'buffer-live-p before :key #'car))
      (set-window-next-buffers window (cl-remove-if-not #'buffer-live-p after))))
  (dolist (window (window-list (pollux--frame-of windows) 'no-minibuffer))
    (let ((process (get-buffer-process (window-buffer window))))
      (when (and process (buffer-local-value 'pollux--at-output (window-buffer window)))
        (set-window-point window (process-mark process))))))

(defun pollux--quit-ediff (control)
  "End the Ediff session of CONTROL, without the user's own hooks for it.
Ediff itself gives up half-way when one of the sides has been killed."
  (when (buffer-live-p control)
    (let ((rest (mapcar (lambda (variable) (buffer-local-value variable control))
                        '(ediff-diff-buffer ediff-custom-diff-buffer ediff-fine-diff-buffer
                          ediff-tmp-buffer ediff-error-buffer ediff-msg-buffer))))
      (with-current-buffer control
        (remove-hook 'kill-buffer-hook #'pollux--killed t)
        (let ((inhibit-message t) (ediff-keep-variants t) (ediff-grab-mouse nil)
              (ediff-cleanup-hook nil) (ediff-quit-hook '(ediff-cleanup-mess)))
          (ignore-errors (ediff-really-quit nil))))
      (dolist (buffer rest)
        (when (buffer-live-p buffer) (kill-buffer buffer)))))
  (setq ediff-session-registry (delq control ediff-session-registry))
  (when (and (not ediff-session-registry) (buffer-live-p ediff-registry-buffer))
    (kill-buffer ediff-registry-buffer)))

(defun pollux--hide (diff)
  "Take the view of DIFF away and put the user back."
  (let* ((buffers (pollux--buffers diff))
         (before (pollux--diff-windows diff))
         (frame (pollux--frame-of before))
         (here (and frame (cl-some (lambda (buffer) (get-buffer-window buffer frame)) buffers)))
         (selected (selected-frame))
         (now (pollux--windows)))
    (pollux--quit-ediff (pollux--diff-control diff))
    (dolist (buffer buffers)
      (when (buffer-live-p buffer)
        (with-current-buffer buffer (set-buffer-modified-p nil))
        (let ((kill-buffer-query-functions nil)) (kill-buffer buffer))))
    (setf (pollux--diff-left diff) nil (pollux--diff-right diff) nil (pollux--diff-control diff) nil)
    ;; Ediff's end uses whatever window it finds.
    (when (and (frame-live-p selected) (not (and here (eq frame selected))))
      (pollux--restore now))
    (when here
      (pollux--restore before))
    (when (frame-live-p selected)
      (select-frame selected 'norecord))))

(defun pollux--put-back (diff)
  "Take the view of DIFF away; with its edits it waits in the queue again."
  (unless (equal (pollux--text diff) (pollux--diff-new diff))
    (setf (pollux--diff-text diff) (pollux--text diff)))
  (let ((pollux--diffs (remq diff pollux--diffs))) ; so that killing its buffers rejects nothing
    (pollux--hide diff)))

(defun pollux--frame-goes (frame)
  "Keep the diffs that FRAME shows when it is closed."
  (dolist (diff pollux--diffs)
    (when (and (pollux--visible-p diff)
               (eq frame (pollux--frame-of (pollux--diff-windows diff))))
      (pollux--put-back diff)
      (run-at-time 0 nil #'pollux--pump))))

;;;; From the queue onto the screen

(defun pollux--screen-p ()
  "Return non-nil when there is a frame that somebody looks at.
A daemon's first one has no terminal."
  (not (equal (terminal-name) "initial_terminal")))

(defun pollux--idle-p ()
  "Return non-nil when the user would not mind a view on the screen now."
  (and (pollux--screen-p)
       (not (active-minibuffer-window))
       (= (recursion-depth) 0)
       (pcase pollux-focus
         ('now t)
         ('idle (when-let ((idle (current-idle-time)))
                  (>= (float-time idle) pollux-idle))))))

(defun pollux--pump ()
  "Show the oldest diff when none is on show and the user pauses."
  (setq pollux--waiter (and (timerp pollux--waiter) (memq pollux--waiter timer-list) pollux--waiter))
  (let ((diff (cl-find-if-not #'pollux--diff-held pollux--diffs)))
    (when (and diff (not (cl-some #'pollux--visible-p pollux--diffs)))
      (cond
       ((pollux--idle-p)
        (condition-case err
            (pollux--show diff)
          (error (setf (pollux--diff-held diff) t)
                 (pollux--complain "a diff cannot be shown: %s (try M-x pollux-review)" (error-message-string err)))))
       ((and (not (eq pollux-focus 'never)) (not pollux--waiter))
        (setq pollux--waiter (run-at-time 0.1 nil #'pollux--pump)))))))

(defun pollux--finish (diff)
  "End DIFF: it is out of the queue before anything is closed.
Return nil when it had ended before."
  (when (memq diff pollux--diffs)
    (setq pollux--diffs (delq diff pollux--diffs)
          pollux--from-panel (and pollux--diffs (pollux--visible-p diff)
                                  (eq (window-buffer) (pollux--diff-control diff))))
    (when (pollux--diff-right diff)
      (run-at-time 0 nil (lambda ()
                           (pollux--hide diff)
                           (pollux--touch-files))))
    (run-at-time 0 nil #'pollux--pump)
    t))

(defun pollux--resolve (diff outcome &optional content)
  "End DIFF with OUTCOME and CONTENT, and tell the companion."
  (when (pollux--finish diff)
    (pollux--notify "pollux/diffResolved"
                    (append (list :diffId (pollux--diff-id diff) :outcome outcome)
                            (and content (list :content content))))))

;;;; What the companion asks

(defconst pollux--max-text (* 16 1024 1024) "The longest text that is shown, in characters.")
(defconst pollux--max-line (* 512 1024)
  "The longest line that is shown, in characters: Emacs is slow with such.")

(defun pollux--check (params)
  "Refuse the proposal of PARAMS when it cannot be shown here.
An encoding is no reason: whatever the locale is, a buffer holds all of Unicode."
  (cl-flet ((refuse (code message) (signal 'pollux-refused (list code message))))
    (unless (pollux--screen-p)
      (refuse -32001 "busy: Emacs has no frame; open one with emacsclient -c or -t"))
    (require 'ediff)
    (unless (executable-find ediff-diff-program)
      (refuse -32001 (format "Ediff needs the program %s, which is not there" ediff-diff-program)))
    (dolist (text (list (plist-get params :oldText) (plist-get params :newText)))
      (when (or (> (length text) pollux--max-text)
                (and (> (length text) pollux--max-line) (pollux--long-line-p text)))
        (refuse -32003 "the text is too big, or a line of it too long, for Ediff")))))

(defun pollux--long-line-p (text)
  "Return non-nil when TEXT has a line longer than `pollux--max-line'."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (let (long)
      (while (and (not long) (> (- (point-max) (point)) pollux--max-line))
        (let ((start (point)))
          (forward-char pollux--max-line)
          (if (search-backward "\n" start t) (forward-char) (setq long t))))
      long)))

(defun pollux--open-diff (params answer)
  "Take the proposal of PARAMS into the queue, and tell ANSWER."
  (pollux--check params)
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
    (funcall answer (list :opened t :bufferModified (if (pollux--unsaved (pollux--diff-path diff)) t :json-false)))))

(defun pollux--close-diff (params answer)
  "Take back the diff of PARAMS and tell ANSWER its text."
  (let ((diff (or (pollux--find (plist-get params :diffId))
                  (signal 'pollux-refused '(-32602 "no such diff"))))
        text)
    (setq text (pollux--text diff))
    (unless (pollux--exact-p text)
      (setq text (pollux--diff-new diff)))
    (pollux--finish diff)
    (unless (equal (plist-get params :outcome) "rejected")
      (pollux--follow (pollux--diff-path diff)))
    (funcall answer (list :content text))))

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
      (pollux--at-once (pollux--resolve diff "accepted" text))
      (pollux--follow (pollux--diff-path diff))))))

;;;###autoload
(defun pollux-reject ()
  "Reject the diff on show."
  (interactive)
  (pollux--resolve (pollux--chosen) "rejected"))

(defun pollux--rule (policy scope pattern diff then)
  "Set POLICY for SCOPE and PATTERN; DIFF says which session or file.
THEN is called when that is done."
  (pollux--check-ready)
  (unless (equal policy "ask")
    (pollux--watch))
  (pollux--call "workspace/executeCommand"
                (list :command "pollux.setPolicy"
                      :arguments (vector (append (list :policy policy)
                                                 (and scope (list :scope scope))
                                                 (and pattern (list :pattern pattern))
                                                 (and diff (list :diffId (pollux--diff-id diff))))))
                (lambda (_) (funcall then))))

;;;###autoload
(defun pollux-accept-all (file)
  "Accept the diff on show and all that follow from its session.
With a prefix argument FILE, all that follow for its file."
  (interactive "P")
  (let ((diff (pollux--chosen)))
    (when (pollux--diff-timer diff)
      (pollux--report-edit diff)) ; so that the rule leaves it alone
    (pollux--rule "accept" (if file "file" "session") nil diff
                  ;; This one with its edits; the rule decides only what nobody edited.
                  (lambda ()
                    (when (memq diff pollux--diffs)
                      (pollux--resolve diff "accepted" (pollux--text diff))
                      (pollux--follow (pollux--diff-path diff)))))))

;;;###autoload
(defun pollux-set-policy (policy scope &optional pattern)
  "Say what becomes of proposals from now on.
POLICY is \"ask\", \"accept\" or \"terminal\" (the CLI asks in its own
terminal), SCOPE \"session\", \"file\", \"pattern\" or \"everything\".  With
\"pattern\", PATTERN is a glob over absolute paths: `*' and `?' stop at
slashes, `**' does not."
  (interactive
   (let* ((policy (completing-read "Proposals: " '("ask" "accept" "terminal") nil t nil nil "ask"))
          (scope (completing-read "For: " '("session" "file" "pattern" "everything") nil t nil nil "session"))
          (root (or (ignore-errors (funcall pollux-roots-function)) default-directory)))
     (list policy scope
           (pcase scope
             ("pattern" (read-string "Pattern: " (concat (directory-file-name (file-truename root)) "/**")))
             ("file" (or (and (not pollux--diffs) (pollux--file (current-buffer))) ""))))))
  (pollux--rule policy (unless (equal scope "everything") scope)
                (unless (member pattern '(nil "")) pattern)
                (car pollux--diffs)
                (lambda () (message "[pollux] %s: %s" policy (if (member pattern '(nil "")) scope pattern)))))

;;;###autoload
(defun pollux-review ()
  "Show the oldest diff that waits, or the one on show again."
  (interactive)
  (let* ((diff (pollux--chosen)) (control (pollux--diff-control diff)))
    (cond
     ((not (pollux--visible-p diff)) (pollux--show diff))
     ((get-buffer-window (pollux--diff-right diff) t)
      (select-window (get-buffer-window (pollux--diff-right diff) t))
      (select-frame-set-input-focus (selected-frame)))
     (t
      (pollux--leave-side-window)
      (with-current-buffer control (ediff-recenter 'no-rehighlight))
      (when-let ((window (get-buffer-window (pollux--diff-right diff))))
        (select-window window))))))

;;;###autoload
(defun pollux-next ()
  "Show the next diff that waits; the one on show, with its edits, waits instead."
  (interactive)
  (let* ((now (cl-find-if #'pollux--visible-p pollux--diffs))
         (next (or (cadr (memq now pollux--diffs)) (car pollux--diffs))))
    (when (or (not next) (eq next now))
      (user-error "No other diff waits"))
    (when now
      (pollux--put-back now))
    (pollux--show next)))

(provide 'pollux-diff)
;;; pollux-diff.el ends here
