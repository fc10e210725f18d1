;;; pollux-ediff.el --- The view of a diff in Ediff  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The buffers and windows of the one proposal that is on show.  The buffers of
;; both sides are pollux's own: your buffer of the file is not touched before the
;; CLI has written it.  This file is loaded with the first proposal, as Ediff,
;; which takes a while.

;;; Code:

(require 'cl-lib)
(require 'ediff)
(require 'pollux-diff)
(require 'pollux-term)
(require 'pollux-unified)

;;;; The view

(defun pollux--header-conflict (diff)
  "Return what ends the conflict of DIFF, \"\" without one."
  (if-let ((conflict (pollux--diff-conflict diff)))
      (substitute-command-keys
       (concat "  " (propertize "conflict:" 'face 'pollux-warning) " \\<pollux-diff-mode-map>\\[pollux-keep] keep"
               (if (= (length (plist-get conflict :places)) 0) "" ", \\[pollux-take] take")))
    ""))

(defun pollux--header-change (diff)
  "Return at which change of DIFF point is, \"\" where there is none."
  (let* ((control (pollux--diff-control diff)) (side (if (eq (current-buffer) (pollux--diff-left diff)) 'A 'B))
         (all (if (buffer-live-p control) (or (buffer-local-value 'ediff-number-of-differences control) 0) 0))
         (at (cl-loop for i below (min all 500)
                      count (<= (or (ignore-errors (ediff-get-diff-posn side 'beg i control)) (point-max)) (point)))))
    (cond ((= all 0) "")
          ((> at 0) (format "  change %d/%d" at all))
          (t (format "  %d change%s" all (if (= all 1) "" "s"))))))

(defun pollux--header-before (diff)
  "Return the line above the left side of DIFF: where the user is."
  (concat " before" (pollux--header-change diff) (pollux--header-place diff)))

(defun pollux--header-place (diff)
  "Return which of how many DIFF is, and whose."
  (let ((all (length pollux--diffs))
        (others (1- (cl-count (pollux--diff-path diff) pollux--diffs :key #'pollux--diff-path :test #'equal))))
    (concat (if (> all 1) (format "  %d of %d waiting" (1+ (cl-position diff pollux--diffs)) all) "")
            (if (> others 0) (format "  %d more for this file" others) "")
            (replace-regexp-in-string "\\`\\(?:.*\\) – " "  " (pollux--diff-title diff)))))

(defun pollux--header ()
  "Return the line above a side of a diff."
  (when-let ((diff (pollux--find pollux--id)))
    (if (eq (current-buffer) (pollux--diff-left diff))
        (pollux--header-before diff)
      (let ((key (lambda (command)
                   (propertize (substitute-command-keys (format "\\<%s>\\[%s]" (if (eq command 'pollux-take-back) "pollux-unified-mode-map" "pollux-diff-mode-map") command))
                               'face 'pollux-key))))
        (concat " " (funcall key 'pollux-accept) " accept  " (funcall key 'pollux-reject) " reject"
                (if (pollux--unified-p diff)
                    (concat "  " (funcall key 'pollux-take-back) " take a change back"
                            (pollux--inline-change) (pollux--header-place diff))
                  "")
                (pollux--header-conflict diff)
                (if (pollux--unsaved (pollux--diff-path diff))
                    (concat "  " (propertize "your unsaved changes of this file are kept, and not in this diff"
                                             'face 'pollux-warning))
                  ""))))))

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
    (pollux--reject diff)))

(put 'pollux--killed 'permanent-local-hook t)

(defun pollux-write-copy (file)
  "Write this side of a diff as it is now into FILE, which decides nothing."
  (interactive "FWrite a copy to file: ")
  (let ((diff (or (pollux--find pollux--id) (user-error "This is no diff")))
        (coding-system-for-write 'utf-8-unix))
    (write-region (if (eq (current-buffer) (pollux--diff-right diff)) (pollux--text diff) (pollux--diff-old diff))
                  nil file nil 'no-message nil t)
    (message "[pollux] %s holds a copy; the proposal still waits for your decision" file)))

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

(defun pollux--terminal-window ()
  "Return the window of an agent's terminal in this frame, nil without one."
  (let ((terminals (pollux--terminals)))
    (get-window-with-predicate (lambda (window) (memq (window-buffer window) terminals)))))

(defun pollux--terminal-place (window)
  "Return the side of the frame at which WINDOW is, and its size there."
  (let ((edges (window-edges window)))
    (cond ((one-window-p) (list 'right (floor (* 0.4 (frame-width)))))
          ((< (window-total-width window) (frame-width))
           (list (if (= (car edges) 0) 'left 'right) (min (window-total-width window) (floor (* 0.5 (frame-width))))))
          (t (list (if (<= (cadr edges) 1) 'above 'below) (min (window-total-height window) (floor (* 0.5 (frame-height)))))))))

(defun pollux--terminal-beside ()
  "Return the place of the terminal that stays beside a diff, nil without one."
  (when-let ((window (and (eq pollux-layout 'terminal) (pollux--terminal-window))))
    (pollux--terminal-place window)))

(defvar pollux--terminal-was nil "The agent's terminal that Ediff is about to cover, and its place.")

(defun pollux--note-terminal ()
  "Remember which agent's terminal is beside a diff that Ediff is about to lay out."
  (let ((place (pollux--terminal-beside)))
    (setq pollux--terminal-was (and place (cons (window-buffer (pollux--terminal-window)) place)))
    (dolist (diff pollux--diffs)
      (when (buffer-live-p (pollux--diff-control diff))
        (with-current-buffer (pollux--diff-control diff)
          (setq-local ediff-split-window-function (pollux--split-function place)))))))

(defun pollux--put-terminal ()
  "Put the terminal back beside the diff that Ediff has laid out."
  (pcase pollux--terminal-was
    (`(,buffer ,side ,size)
     (when (and (not (get-buffer-window buffer)) ; Ediff may have left the windows as they were
                (cl-some (lambda (diff) (and (pollux--visible-p diff) (get-buffer-window (pollux--diff-right diff))))
                         pollux--diffs))
       (set-window-buffer (split-window (frame-root-window) (- size) side) buffer))))
  (setq pollux--terminal-was nil))

(add-hook 'ediff-before-setup-windows-hook #'pollux--note-terminal)
(add-hook 'ediff-after-setup-windows-hook #'pollux--put-terminal)

(defun pollux--split-function (&optional terminal)
  "Return the function that splits a diff's window, by `pollux-layout'.
TERMINAL is the place of the terminal beside it, nil without one."
  (let ((width (- (frame-width) (if (memq (car terminal) '(left right)) (nth 1 terminal) 0))))
    (if (or (eq pollux-layout 'below) (and (not (eq pollux-layout 'beside)) (< width 100)))
        #'split-window-vertically
      #'split-window-horizontally)))

(defun pollux--relayout (frame)
  "Lay out the diff in FRAME anew where FRAME has another size.
Its buffers stay, with what was typed, and point."
  (when-let ((diff (cl-find-if (lambda (diff)
                                 (and (pollux--visible-p diff) (pollux--diff-control diff)
                                      (get-buffer-window (pollux--diff-right diff) frame)
                                      (get-buffer-window (pollux--diff-left diff) frame)))
                               pollux--diffs)))
    (unless (equal (pollux--diff-size diff) (frame-width frame))
      (if (active-minibuffer-window)
          (run-at-time 0.5 nil #'pollux--relayout frame)
        (setf (pollux--diff-size diff) (frame-width frame))
        (with-selected-frame frame
          (let ((selected (window-buffer))
                (places (mapcar (lambda (buffer) (cons buffer (window-point (get-buffer-window buffer))))
                                (list (pollux--diff-left diff) (pollux--diff-right diff))))
                (inhibit-message t) (inhibit-read-only t)) ; of Ediff's panel
            (select-window (get-buffer-window (pollux--diff-right diff)))
            (with-demoted-errors "[pollux] %S"
              (ediff-setup-windows (pollux--diff-left diff) (pollux--diff-right diff) nil (pollux--diff-control diff)))
            (pcase-dolist (`(,buffer . ,point) places)
              (when-let ((window (get-buffer-window buffer)))
                (set-window-point window point)))
            (select-window (or (get-buffer-window selected) (selected-window)))))))))

(defun pollux--resized (frame)
  "Lay out the diff in FRAME anew once its windows have their sizes."
  (when (framep frame)
    (run-at-time 0 nil (lambda () (when (frame-live-p frame) (pollux--relayout frame))))))

(defun pollux--panel (diff)
  "Return what sets up the control panel of DIFF."
  (lambda ()
    (setq-local ediff-window-setup-function #'ediff-setup-windows-plain)
    (setq-local ediff-split-window-function (pollux--split-function))
    (setq pollux--id (pollux--diff-id diff))
    (use-local-map (make-composed-keymap pollux-diff-control-map (current-local-map)))
    (add-hook 'kill-buffer-hook #'pollux--killed nil t)))

(defun pollux--leave-side-window ()
  "Select a window that may be split: not a dedicated one at a side."
  (when (window-parameter nil 'window-side)
    (when-let ((window (get-window-with-predicate
                        (lambda (w) (not (window-parameter w 'window-side))))))
      (select-window window))))

(defun pollux--start-ediff (left right hook)
  "Start Ediff on LEFT and RIGHT with HOOK; return its control panel.
Where one is empty, no file is written for it and no program run: Emacs
would answer no key meanwhile."
  (let ((hunk (pollux--only-hunk left right))
        (write-region-inhibit-fsync t)) ; of Ediff's temporary files
    (if (not hunk)
        (ediff-buffers left right (list hook))
      (cl-letf (((symbol-function 'ediff-make-diff2-buffer)
                 (lambda (buffer &rest _)
                   (with-current-buffer buffer (erase-buffer) (insert hunk)))))
        (ediff-setup left "" right "" nil nil (list hook) '((ediff-job-name . ediff-buffers)))))))

(defun pollux--show-sides (diff)
  "Show the buffers of DIFF, by `pollux-layout'."
  (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
        (ediff-split-window-function (pollux--split-function (pollux--terminal-beside)))
        (ediff-make-buffers-readonly-at-startup nil)
        (left (pollux--diff-left diff)) (right (pollux--diff-right diff))
        (inhibit-message t))
    (add-hook 'window-size-change-functions #'pollux--resized)
    (setf (pollux--diff-size diff) (frame-width))
    (condition-case err
        (progn
          (pollux--leave-side-window)
          (if (pollux--unified-wanted-p diff)
              (pollux--show-unified diff)
            (setf (pollux--diff-control diff)
                  (pollux--at-once
                    (pollux--start-ediff left right (pollux--panel diff))))))
      (error
       (setf (pollux--diff-right diff) nil (pollux--diff-left diff) nil)
       (dolist (buffer (list left right))
         (with-current-buffer buffer (setq pollux--id nil))
         (kill-buffer buffer))
       (pollux--restore (pollux--diff-windows diff))
       (signal (car err) (cdr err))))))

(defun pollux--show (diff)
  "Show DIFF now, in Ediff."
  (pollux--note-terminals)
  (setf (pollux--diff-windows diff) (pollux--windows)
        (pollux--diff-held diff) nil)
  (let ((left (pollux--side diff "before" (pollux--diff-old diff)))
        (right (pollux--side diff "proposal" (pollux--text diff))))
    (setf (pollux--diff-left diff) (car left)
          (pollux--diff-right diff) (car right)
          (pollux--diff-shape diff) (cdr right)
          (pollux--diff-tick diff) (and (not (pollux--diff-text diff))
                                        (buffer-chars-modified-tick (car right)))
          (pollux--diff-told diff) (buffer-chars-modified-tick (car right)))
    (with-current-buffer (car left) (setq buffer-read-only t))
    (with-current-buffer (car right) (setq buffer-read-only (and (pollux--diff-fixed diff) t)))
    (with-current-buffer (car right) (add-hook 'after-change-functions #'pollux--changed nil t))
    (pollux--show-sides diff)
    (select-window (get-buffer-window (car right)))
    (when (pollux--diff-control diff)
      (pollux--first-change diff))
    (pollux--mark diff)
    (run-hooks 'pollux-diff-hook)
    (when (and (pollux--diff-control diff) (or pollux--from-panel (eq pollux-select 'panel)))
      (select-window (or (get-buffer-window (pollux--diff-control diff)) (selected-window))))
    (message "[pollux] %s: %s accepts, %s rejects%s%s%s" (pollux--diff-title diff)
             (substitute-command-keys "\\<pollux-diff-mode-map>\\[pollux-accept]")
             (substitute-command-keys "\\<pollux-diff-mode-map>\\[pollux-reject]")
             (if (cdr pollux--diffs) (format ", %d more wait" (1- (length pollux--diffs))) "")
             (if (pollux--unsaved (pollux--diff-path diff))
                 "; your unsaved changes of it are kept, and not in this diff" "")
             (if (pollux--diff-fixed diff) (concat "; " (pollux--diff-fixed diff)) ""))))

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

;;;; What others have made of it

(defun pollux--replace (buffer text)
  "Make TEXT that of BUFFER; what is the same stays, with its markers.
Return its shape."
  (let (shape (source (generate-new-buffer " *pollux text*" t)))
    (unwind-protect
        (progn
          (with-current-buffer source (setq shape (pollux--fill text)))
          (with-current-buffer buffer
            (let ((inhibit-read-only t) (inhibit-modification-hooks nil))
              (undo-boundary)
              (save-restriction
                (widen)
                (replace-buffer-contents source 0.5))
              (undo-boundary)
              (set-buffer-modified-p nil))))
      (kill-buffer source))
    shape))

(defun pollux--update (diff)
  "Show both sides of DIFF as the companion has told them last."
  (pollux--replace (pollux--diff-left diff) (pollux--diff-old diff))
  (setf (pollux--diff-shape diff) (pollux--replace (pollux--diff-right diff) (pollux--diff-new diff))
        (pollux--diff-tick diff) (pollux--tick diff)
        (pollux--diff-told diff) (pollux--tick diff))
  (pollux--compare diff))

(defun pollux--place (buffer)
  "Return a function that puts the window of BUFFER back to where it is."
  (when-let ((window (get-buffer-window buffer)))
    (let ((point (copy-marker (window-point window) t)) (start (copy-marker (window-start window))))
      (lambda ()
        (when (and (window-live-p window) (eq (window-buffer window) buffer))
          (set-window-point window point)
          (set-window-start window start 'noforce))))))

(defun pollux--compare (diff)
  "Have Ediff look again at what differs in DIFF, and leave point and windows."
  (let* ((control (pollux--diff-control diff)) (window (and control (get-buffer-window control)))
         (places (mapcar #'pollux--place (list (pollux--diff-left diff) (pollux--diff-right diff))))
         (selected (window-buffer)) (inhibit-message t))
    (cond
     ((pollux--unified-p diff)
      (pollux--draw diff))
     ((active-minibuffer-window)
      (run-at-time 0.5 nil (lambda () (when (and (memq diff pollux--diffs) (pollux--visible-p diff)) (pollux--compare diff)))))
     (window
      (with-demoted-errors "[pollux] %S"
        (with-selected-window window ; where Ediff looks for its buffers
          (let ((write-region-inhibit-fsync t)) ; of its temporary files
            (ediff-update-diffs))))
      (when-let ((back (get-buffer-window selected)))
        (select-window back))
      (dolist (put-back places)
        (when put-back (funcall put-back)))))))

(defface pollux-conflict '((t :inherit warning))
  "The mark of lines that the file has changed, too."
  :group 'pollux)

(defun pollux--mark (diff)
  "Mark beside the text where the file has changed what DIFF changes, too."
  (with-current-buffer (pollux--diff-right diff)
    (remove-overlays nil nil 'pollux t)
    (save-excursion
      (save-restriction
        (widen)
        (mapc (lambda (place)
                (let ((start (plist-get place :start)) (end (plist-get place :end)))
                  (goto-char (point-min))
                  (forward-line start)
                  (dotimes (_ (max 1 (- end start)))
                    (let ((mark (make-overlay (point) (point))))
                      (overlay-put mark 'pollux t)
                      (overlay-put mark 'before-string (propertize "! " 'face 'pollux-conflict)))
                    (forward-line 1))))
              (plist-get (pollux--diff-conflict diff) :places))))
    (force-mode-line-update)))

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
Terminals go on where their output has come to since, and whoever types
into a prompt goes on there."
  (set-window-configuration (car windows))
  (pcase-dolist (`(,window ,before ,after) (cdr windows))
    (when (window-live-p window)
      (set-window-prev-buffers window (cl-remove-if-not #'buffer-live-p before :key #'car))
      (set-window-next-buffers window (cl-remove-if-not #'buffer-live-p after))))
  (dolist (window (window-list (pollux--frame-of windows) 'no-minibuffer))
    (let ((process (get-buffer-process (window-buffer window))))
      (when (and process (buffer-local-value 'pollux--at-output (window-buffer window)))
        (set-window-point window (process-mark process)))))
  (when-let ((prompt (active-minibuffer-window)))
    (when (eq (window-frame prompt) (selected-frame))
      (select-window prompt))))

(defun pollux--select (diff)
  "Select the window of DIFF's proposal, and put it on the screen again if need be."
  (if-let ((window (get-buffer-window (pollux--diff-right diff) t)))
      (progn
        (select-window window)
        (select-frame-set-input-focus (selected-frame)))
    (pollux--leave-side-window)
    (if (pollux--unified-p diff)
        (pollux--show-unified diff)
      (with-current-buffer (pollux--diff-control diff) (ediff-recenter 'no-rehighlight)))
    (pollux--compare diff)
    (when-let ((window (get-buffer-window (pollux--diff-right diff))))
      (select-window window))))

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

(defun pollux--mend-tab (diff)
  "Give the tab that shows DIFF, and is not selected, its windows back."
  (let* ((before (pollux--diff-windows diff)) (frame (pollux--frame-of before))
         (name (buffer-name (pollux--diff-right diff))))
    (dolist (tab (and frame name (frame-parameter frame 'tabs)))
      (when (and (assq 'wc tab) (member name (flatten-tree (alist-get 'ws tab))))
        (setcdr (assq 'wc tab) (car before))))))

(defun pollux--hide (diff)
  "Take the view of DIFF away and put the user back."
  (let* ((buffers (pollux--buffers diff))
         (before (pollux--diff-windows diff))
         (frame (pollux--frame-of before))
         (here (and frame (cl-some (lambda (buffer) (get-buffer-window buffer frame)) buffers)))
         (selected (selected-frame))
         (now (pollux--windows)))
    (unless here
      (pollux--mend-tab diff))
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
  (pollux--report-edit diff) ; what comes back is shown next time
  (unless (equal (pollux--text diff) (pollux--diff-new diff))
    (setf (pollux--diff-text diff) (pollux--text diff)))
  (let ((pollux--diffs (remq diff pollux--diffs))) ; so that killing its buffers rejects nothing
    (pollux--hide diff)))

;;;; What can be shown

(defconst pollux--max-text (* 16 1024 1024) "The longest text that is shown, in characters.")
(defconst pollux--max-line (* 512 1024)
  "The longest line that is shown, in characters: Emacs is slow with such.")

(defun pollux--check (params)
  "Refuse the proposal of PARAMS when it cannot be shown here.
An encoding is no reason: whatever the locale is, a buffer holds all of Unicode."
  (cl-flet ((refuse (code message) (signal 'pollux-refused (list code message))))
    (unless (pollux--screen-p)
      (refuse -32001 "busy: Emacs has no frame; open one with emacsclient -c or -t"))
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

(provide 'pollux-ediff)
;;; pollux-ediff.el ends here
