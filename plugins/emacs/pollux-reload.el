;;; pollux-reload.el --- Buffers follow what the CLI writes  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The CLI writes the files, not Emacs.  A buffer without unsaved changes shows
;; the new text as soon as it is there, with its undo history, point, markers
;; and folds; one with unsaved changes is left alone.

;;; Code:

(require 'pollux-rpc)
(require 'pollux-context)

(defun pollux--reread (file _auto-save)
  "Replace the current buffer by FILE, for `revert-buffer'.
What is the same on both sides stays with its markers, overlays and folds."
  (let ((buffer (current-buffer)) coding)
    (set-visited-file-modtime) ; before it is read: it may be half written
    (with-temp-buffer
      (let ((coding-system-for-read (car-safe (buffer-local-value 'buffer-file-coding-system-explicit buffer))))
        (insert-file-contents file))
      (setq coding last-coding-system-used)
      (let ((source (current-buffer)))
        (with-current-buffer buffer
          (let ((group (prepare-change-group))
                (buffer-file-name nil) ; else it would be locked
                (inhibit-read-only t))
            (undo-boundary)
            (save-restriction
              (widen)
              (replace-buffer-contents source 0.5))
            (undo-amalgamate-change-group group)))))
    (when coding (setq buffer-file-coding-system coding))
    (set-buffer-modified-p nil)))

(defun pollux--reload (buffer)
  "Show in BUFFER, which has no unsaved changes, what is on disk now."
  (with-current-buffer (or (buffer-base-buffer buffer) buffer)
    (let ((inhibit-message t)
          (revert-buffer-insert-file-contents-function
           (if (< (buffer-size) 1000000) #'pollux--reread revert-buffer-insert-file-contents-function)))
      (revert-buffer t t t))))

(defun pollux--follow (path &optional since told)
  "Show in the buffer of PATH what the CLI writes, as soon as it has.
SINCE is when that began, TOLD that unsaved changes are in the way."
  (setq since (or since (float-time)))
  (let ((buffer (find-buffer-visiting path)) (age (- (float-time) since)))
    (when buffer
      (unless (or (verify-visited-file-modtime buffer) (not (file-exists-p path)))
        (cond
         ((not (buffer-modified-p buffer)) (pollux--reload buffer))
         ((not told)
          (setq told t)
          (message "[pollux] %s was written by the CLI; your unsaved changes are kept"
                   (file-name-nondirectory path))))))
    (if (and (not told) (< age 120))
        (run-at-time (if (< age 10) 0.1 1) nil #'pollux--follow path since told)
      (pollux--touch-files))))

(defvar pollux--watcher nil "The timer that looks for what the CLI wrote without a diff.")

(defun pollux--watch ()
  "From now on, reload what the CLI writes without showing a diff."
  (unless pollux--watcher
    (setq pollux--watcher (run-at-time 1 1 #'pollux--look))))

(defun pollux--look ()
  "Reload what was written in the open projects."
  (dolist (buffer (and pollux--ready (not (active-minibuffer-window)) (buffer-list)))
    (when-let ((path (and (not (buffer-base-buffer buffer)) (pollux--file buffer))))
      (when (and (not (buffer-modified-p buffer)) (not (verify-visited-file-modtime buffer))
                 (cl-some (lambda (root) (string-prefix-p (file-name-as-directory root) (file-truename path)))
                          pollux--roots))
        (pollux--reload buffer)))))

(provide 'pollux-reload)
;;; pollux-reload.el ends here
