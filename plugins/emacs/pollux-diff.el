;;; pollux-diff.el --- The CLI's proposals in Ediff  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; One proposal is on show at a time, the others wait in a queue.  How it is
;; shown is in pollux-ediff.el.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'pollux-rpc)
(require 'pollux-context)
(require 'pollux-reload)

(autoload 'pollux--check "pollux-ediff")
(autoload 'pollux--show "pollux-ediff")
(autoload 'pollux--hide "pollux-ediff")
(autoload 'pollux--put-back "pollux-ediff")
(autoload 'pollux--select "pollux-ediff")
(autoload 'pollux--update "pollux-ediff")
(autoload 'pollux--mark "pollux-ediff")
(autoload 'pollux-write-copy "pollux-ediff" nil t)
(declare-function pollux--frame-of "pollux-ediff")

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

(defcustom pollux-layout 'fitting
  "How a diff's file and proposal are laid out.
`fitting' puts them beside each other in a frame of 100 columns or more,
else one above the other.  `terminal' does so, too, and leaves an agent's
terminal in sight beside them.  `unified' shows the proposal alone, with
the lines that it takes away between its own."
  :type '(choice (const :tag "beside each other" beside) (const :tag "one above the other" below)
                 (const :tag "the proposal alone, with its changes inline" unified)
                 (const :tag "beside the agent's terminal" terminal)
                 (const :tag "as the frame's width allows" fitting))
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
    (define-key map (kbd "C-c C-o") #'pollux-keep)
    (define-key map (kbd "C-c C-t") #'pollux-take)
    (define-key map [remap save-buffer] #'pollux-accept)
    (define-key map [remap write-file] #'pollux-write-copy)
    map)
  "The keys in both sides of a diff.")

(defvar pollux-diff-control-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'pollux-accept)
    (define-key map (kbd "C-c C-k") #'pollux-reject)
    (define-key map (kbd "C-c C-o") #'pollux-keep)
    (define-key map (kbd "C-c C-t") #'pollux-take)
    (define-key map "q" #'pollux-reject)
    map)
  "The keys in the control panel of a diff, besides Ediff's own.")

;;;; The queue

(cl-defstruct (pollux--diff (:constructor pollux--make-diff))
  id path title old new          ; both sides as the companion has told them last
  proposed                       ; as proposed first
  (version 0) (base 0)           ; of new and old, as the companion counts them
  (edits 0)                      ; reported, of which each has a number
  told                           ; the tick of what the companion has
  conflict                       ; with the file: a plist, nil without one
  fixed                          ; why it cannot be edited, nil where it can be
  deciding                       ; the companion has been asked to end it
  text                           ; as edited, while it is not on show; nil for new
  left right control             ; buffers, nil while it waits
  shape                          ; of the proposal, see `pollux--fill'
  tick                           ; of the right buffer when nobody had edited it
  windows                        ; the window configuration before, and the buffers shown before
  size                           ; the frame's width when it was laid out
  held                           ; it waits for `pollux-review'
  timer)                         ; of the next report of an edit

(defvar pollux--diffs nil "The diffs that wait for a decision, oldest first.")
(defvar pollux--unheard nil
  "Announcements of rejections that no companion has answered.")
(defvar pollux--from-panel nil "Non-nil when the queue's last decision was made in a control panel.")
(defvar pollux--waiter nil "The timer that opens a diff when the user pauses.")
(defvar-local pollux--id nil "The diff that a buffer belongs to.")
(put 'pollux--id 'permanent-local t) ; whatever mode it is given

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
         (dos (pollux--exactly
                (and (string-match-p "\r\n" body)
                     (not (string-match-p "\\(?:\\`\\|[^\r]\\)\n" body))))))
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

(defun pollux--tick (diff)
  "Return what changes with each edit of DIFF, nil while it is not on show."
  (and (pollux--visible-p diff) (buffer-chars-modified-tick (pollux--diff-right diff))))

(defun pollux--announcement (diff)
  "Return DIFF as a companion that has come back wants to hear of it.
It counts versions anew."
  (setf (pollux--diff-version diff) 1 (pollux--diff-base diff) 0 (pollux--diff-edits diff) 0
        (pollux--diff-deciding diff) nil (pollux--diff-told diff) (pollux--tick diff))
  (list :diffId (pollux--diff-id diff) :filePath (pollux--diff-path diff)
        :shown (pollux--diff-new diff) :oldText (pollux--diff-old diff)
        :content (pollux--sayable (pollux--text diff))))

(defun pollux--changed (&rest _)
  "Report the text as it is edited, every 200 ms at the most."
  (when-let ((diff (pollux--find pollux--id)))
    (unless (pollux--diff-timer diff)
      (setf (pollux--diff-timer diff) (run-at-time 0.2 nil #'pollux--report-edit diff)))))

(defun pollux--report-edit (diff)
  "Report the text of DIFF as it is now, if the companion has not heard of it.
Return nil when there was nothing to report."
  (when (timerp (pollux--diff-timer diff))
    (cancel-timer (pollux--diff-timer diff)))
  (setf (pollux--diff-timer diff) nil)
  (when (and (memq diff pollux--diffs) (pollux--visible-p diff)
             (not (equal (pollux--tick diff) (pollux--diff-told diff))))
    (pollux--at-once
      (let ((text (pollux--text diff)))
        (when (pollux--exact-p text)
          ;; Before it is sent: Emacs may read an answer while it writes.
          (setf (pollux--diff-told diff) (pollux--tick diff))
          (ignore-errors
            (pollux--notify "pollux/didChangeDiff"
                            (list :diffId (pollux--diff-id diff)
                                  :version (cl-incf (pollux--diff-edits diff))
                                  :from (pollux--diff-version diff)
                                  :content text))))))
    t))

(defun pollux--crossed-p (diff params)
  "Return non-nil when PARAMS do not include the user's last edit of DIFF.
They would overwrite it; what is merged with it comes next.  An edit that
nobody has heard of is reported now."
  (or (pollux--report-edit diff)
      (< (or (plist-get params :edit) most-positive-fixnum) (pollux--diff-edits diff))))

(defun pollux--take-over (diff params)
  "Take over into DIFF what PARAMS say that others have made of it.
Return non-nil when something was said to the user."
  (setf (pollux--diff-version diff) (plist-get params :version)
        (pollux--diff-new diff) (plist-get params :content)
        (pollux--diff-text diff) nil)
  (when (pollux--visible-p diff)
    (pollux--update diff))
  (let ((before (pollux--diff-conflict diff)) (conflict (plist-get params :conflict)))
    (setf (pollux--diff-conflict diff) conflict)
    (when (pollux--visible-p diff)
      (pollux--mark diff))
    (when (and conflict (not (equal conflict before)))
      (message "[pollux] %s: %s; %s keeps the proposal%s" (file-name-nondirectory (pollux--diff-path diff))
               (plist-get conflict :reason)
               (substitute-command-keys "\\<pollux-diff-mode-map>\\[pollux-keep]")
               (if (= (length (plist-get conflict :places)) 0) ""
                 (substitute-command-keys ", \\<pollux-diff-mode-map>\\[pollux-take] takes the file's lines")))
      t)))

(defun pollux--base-changed (params _)
  "Show the diff of PARAMS on what its file holds now."
  (when-let ((diff (pollux--find (plist-get params :diffId))))
    (unless (pollux--crossed-p diff params)
      (let ((news (not (equal (pollux--diff-old diff) (plist-get params :oldText)))))
        (setf (pollux--diff-base diff) (plist-get params :baseVersion)
              (pollux--diff-old diff) (plist-get params :oldText))
        (unless (or (pollux--take-over diff params) (not news))
          (message "[pollux] %s: the file has changed; the proposal is shown on what it holds now"
                   (file-name-nondirectory (pollux--diff-path diff))))))))

(defun pollux--proposal-changed (params _)
  "Show what was made of the proposal of PARAMS in another view."
  (when-let ((diff (pollux--find (plist-get params :diffId))))
    (unless (pollux--crossed-p diff params)
      (pollux--take-over diff params))))

;;;; From the queue onto the screen

(defun pollux--screen-p ()
  "Return non-nil when there is a frame that somebody looks at.
A daemon's first one has no terminal."
  (not (equal (terminal-name) "initial_terminal")))

(defun pollux--pause-p ()
  "Return non-nil when the user pauses between two commands.
Not within a key sequence, whose rest would be another command in a diff, not
before the command that a prefix argument is for, and not while searching or
recording a keyboard macro."
  (when-let ((idle (current-idle-time)))
    (and (>= (float-time idle) pollux-idle)
         (= (length (this-command-keys-vector)) 0)
         (not (or prefix-arg defining-kbd-macro executing-kbd-macro
                  ;; Timers and filters may run in another buffer than the user's.
                  (buffer-local-value 'isearch-mode (window-buffer)))))))

(defun pollux--idle-p ()
  "Return non-nil when the user would not mind a view on the screen now.
Never while a command, such as `query-replace', reads an answer."
  (and (pollux--screen-p)
       (not (active-minibuffer-window))
       (= (recursion-depth) 0)
       (not this-command)
       (pcase pollux-focus
         ('now t)
         ('idle (pollux--pause-p)))))

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

(defun pollux--frame-goes (frame)
  "Keep the diffs that FRAME shows when it is closed."
  (dolist (diff pollux--diffs)
    (when (and (pollux--visible-p diff)
               (eq frame (pollux--frame-of (pollux--diff-windows diff))))
      (pollux--put-back diff)
      (run-at-time 0 nil #'pollux--pump))))

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

(defun pollux--resolution (diff outcome &optional content)
  "Return the parameters that end DIFF, as it is on show, with OUTCOME and CONTENT.
CONTENT counts as a report of an edit."
  (append (list :diffId (pollux--diff-id diff) :version (pollux--diff-version diff)
                :baseVersion (pollux--diff-base diff) :outcome outcome)
          (and content (list :content content :edit (cl-incf (pollux--diff-edits diff))))))

(defun pollux--reject (diff)
  "Reject DIFF.  One that is being accepted is not."
  (unless (pollux--diff-deciding diff)
    (pollux--report-edit diff) ; the history keeps what the user made of it
    (let* ((id (pollux--diff-id diff)) (params (pollux--resolution diff "rejected"))
           (heard (lambda (_) (pollux--rejection id)))
           (rejected (append (pollux--announcement diff) '(:outcome "rejected"))))
      (when (pollux--finish diff)
        (push rejected pollux--unheard)
        (pollux--call "pollux/resolveDiff" params heard heard)))))

(defun pollux--rejection (id)
  "Return what `pollux--unheard' has of the diff ID, and forget it."
  (when-let ((rejected (cl-find id pollux--unheard :key (lambda (r) (plist-get r :diffId)) :test #'equal)))
    (setq pollux--unheard (delq rejected pollux--unheard))
    rejected))

(defun pollux--decide (diff outcome text then)
  "Ask the companion to end DIFF, or its conflict, with OUTCOME and TEXT.
THEN is called if it does.  It refuses where something is newer, which it tells."
  (unless (or (pollux--diff-deciding diff) (not (memq diff pollux--diffs)))
    (unless pollux--ready
      (user-error "The companion does not run just now; the proposal still waits for your decision"))
    (when (pollux--visible-p diff) ; it is kept as an edit where it cannot be taken
      (setf (pollux--diff-told diff) (pollux--tick diff)))
    (pollux--at-once
      (pollux--call "pollux/resolveDiff" (pollux--resolution diff outcome text)
                    (lambda (_)
                      (setf (pollux--diff-deciding diff) nil)
                      (when (memq diff pollux--diffs)
                        (funcall then)))
                    (lambda (message)
                      (setf (pollux--diff-deciding diff) nil)
                      (when (memq diff pollux--diffs)
                        (message "[pollux] %s" message)
                        (run-at-time 0 nil #'pollux--pump)))))
    (setf (pollux--diff-deciding diff) t)))

(defun pollux--accept (diff text)
  "Accept DIFF with TEXT."
  (pollux--decide diff "accepted" text
                  (lambda ()
                    (unless (equal (pollux--text diff) text) ; typed since
                      (pollux--keep diff (pollux--text diff)))
                    (pollux--finish diff)
                    (pollux--follow (pollux--diff-path diff)))))

(defun pollux--settle (outcome said)
  "End the conflict of the diff on show with OUTCOME, and say SAID."
  (let* ((diff (pollux--chosen)) (text (pollux--text diff)))
    (unless (pollux--diff-conflict diff)
      (user-error "Nothing is in conflict here"))
    (unless (pollux--exact-p text)
      (user-error "The proposal holds bytes that are not Unicode"))
    (pollux--decide diff outcome text
                    (lambda () (message "[pollux] %s: %s" (file-name-nondirectory (pollux--diff-path diff)) said)))))

;;;; What the companion asks

(defun pollux--announce (diff)
  "Say that DIFF waits, once no question is in the echo area.
The message would hide the question."
  (cond ((not (memq diff pollux--diffs)))
        (cursor-in-echo-area (run-at-time 1 nil #'pollux--announce diff))
        ((message "[pollux] %s waits: M-x pollux-review shows it" (pollux--diff-title diff)))))

(defun pollux--open-diff (params answer)
  "Take the proposal of PARAMS into the queue, and tell ANSWER."
  (pollux--check params)
  (when-let ((known (pollux--find (plist-get params :diffId))))
    (pollux--finish known))
  (let ((diff (pollux--make-diff
               :id (plist-get params :diffId) :path (plist-get params :filePath)
               :title (plist-get params :title)
               :old (plist-get params :oldText) :new (plist-get params :newText)
               :proposed (plist-get params :newText)
               :version (or (plist-get params :version) 0) :base (or (plist-get params :baseVersion) 0)
               :conflict (plist-get params :conflict)
               :fixed (let ((why (plist-get params :readOnly))) (and (stringp why) (not (string-empty-p why)) why)))))
    (setq pollux--diffs (append pollux--diffs (list diff)))
    ;; Not 0: keys that came while its text was read have their answer first.
    (run-at-time 0.01 nil (lambda ()
                            (pollux--pump)
                            (unless (pollux--visible-p diff)
                              (pollux--announce diff))))
    (funcall answer (list :opened t :bufferModified (if (pollux--unsaved (pollux--diff-path diff)) t :json-false)))))

(defun pollux--keep (diff text)
  "Keep TEXT, the user's of DIFF, that nobody waits for any more.
Its CLI or its companion has gone."
  (with-current-buffer (generate-new-buffer (format "%s <edited>" (file-name-nondirectory (pollux--diff-path diff))))
    (insert text)
    (message "[pollux] %s: nobody waits for this proposal any more; what you made of it is kept in buffer %s"
             (pollux--diff-title diff) (buffer-name))))

(defun pollux--close-diff (params answer)
  "Take back the diff of PARAMS and tell ANSWER its text, also of a rejected one."
  (if-let ((rejected (pollux--rejection (plist-get params :diffId))))
      (funcall answer (list :content (plist-get rejected :content)))
    (pollux--take-back (or (pollux--find (plist-get params :diffId))
                           (signal 'pollux-refused '(-32602 "no such diff")))
                       params answer)))

(defun pollux--take-back (diff params answer)
  "End DIFF as PARAMS say and tell ANSWER its text."
  (let (text)
    (setq text (pollux--text diff))
    (unless (pollux--exact-p text)
      (setq text (pollux--diff-new diff)))
    (when (and (not (equal text (pollux--diff-proposed diff)))
               (or (equal (plist-get params :outcome) "withdrawn") ; or nobody has heard of the last of it
                   (and (pollux--visible-p diff) (not (equal (pollux--tick diff) (pollux--diff-told diff))))))
      (pollux--keep diff text))
    (pollux--finish diff)
    (unless (equal (plist-get params :outcome) "rejected")
      (pollux--follow (pollux--diff-path diff)))
    (funcall answer (list :content text :version (pollux--diff-version diff)))))

;;;; Commands

(defun pollux--chosen ()
  "Return the diff that a command is about."
  (or (pollux--find pollux--id)
      (cl-find-if #'pollux--visible-p pollux--diffs)
      (car pollux--diffs)
      (user-error "No diff is open")))

(defun pollux--turn-to (diff)
  "Show DIFF; another one on show, with its edits, waits instead."
  (let ((now (cl-find-if #'pollux--visible-p pollux--diffs)))
    (if (eq diff now)
        (pollux--select diff)
      (when now
        (pollux--put-back now))
      (pollux--show diff))))

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
     ((and (string-empty-p text) (not (string-empty-p (pollux--diff-proposed diff))))
      (user-error "An emptied proposal cannot be accepted: the CLI would write its own text; reject it instead"))
     (t (pollux--accept diff text)))))

;;;###autoload
(defun pollux-reject ()
  "Reject the diff on show."
  (interactive)
  (pollux--reject (pollux--chosen)))

;;;###autoload
(defun pollux-keep ()
  "End a conflict: the proposal stands over what the file has become.
That accepts nothing yet."
  (interactive)
  (pollux--settle "keep" "the proposal stands; accept it when you like"))

;;;###autoload
(defun pollux-take ()
  "End a conflict: the file's own lines stand.
That accepts nothing yet."
  (interactive)
  (pollux--settle "take" "the file's lines stand; accept the rest when you like"))

(defun pollux--rule (policy scope pattern diff then)
  "Set POLICY for SCOPE and PATTERN; DIFF says which session or file.
THEN is called when that is done."
  (pollux--check-ready)
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
                      (pollux--accept diff (pollux--text diff)))))))

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
(defun pollux-review (&optional n)
  "Show the oldest diff that waits, or the one on show again.
With a prefix argument N, the one with that number in `pollux-status'."
  (interactive "P")
  (setq n (and n (prefix-numeric-value n)))
  (pollux--turn-to (cond ((not n) (pollux--chosen))
                         ((and (> n 0) (nth (1- n) pollux--diffs)))
                         (t (user-error "There is no diff %d" n)))))

;;;###autoload
(defun pollux-next ()
  "Show the next diff that waits; the one on show, with its edits, waits instead."
  (interactive)
  (let* ((now (cl-find-if #'pollux--visible-p pollux--diffs))
         (next (or (cadr (memq now pollux--diffs)) (car pollux--diffs))))
    (when (or (not next) (eq next now))
      (user-error "No other diff waits"))
    (pollux--turn-to next)))

(provide 'pollux-diff)
;;; pollux-diff.el ends here
