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
  (let ((buffer (current-buffer)) coding
        (time (file-attribute-modification-time (file-attributes file)))) ; before it is read: it may be half written
    (with-temp-buffer
      (let ((coding-system-for-read (car-safe (buffer-local-value 'buffer-file-coding-system-explicit buffer))))
        (insert-file-contents file))
      (setq coding last-coding-system-used)
      (let ((source (current-buffer)))
        (with-current-buffer buffer
          (undo-boundary) ; before the group, which takes away those within it
          (let ((group (prepare-change-group))
                (buffer-file-name nil) ; else it would be locked
                (inhibit-read-only t))
            (save-restriction
              (widen)
              (replace-buffer-contents source 0.5))
            (undo-amalgamate-change-group group)))))
    (when coding (setq buffer-file-coding-system coding))
    (set-visited-file-modtime time) ; now, so that undoing what was read is a change of the file
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
          (pollux--note-unsaved buffer)))))
    (if (and (not told) (< age 120))
        (run-at-time (if (< age 10) 0.1 1) nil #'pollux--follow path since told)
      (pollux--touch-files))))

(defvar-local pollux--told nil "What the user has been told of this buffer since it was read or saved.")

(defun pollux--note (buffer why text)
  "Say TEXT about BUFFER, once for each WHY."
  (with-current-buffer buffer
    (unless (eq pollux--told why)
      (setq pollux--told why)
      (message "[pollux] %s: %s" (file-name-nondirectory buffer-file-name) text))))

(defun pollux--note-unsaved (buffer)
  "Say once that BUFFER has unsaved changes, and its file others."
  (pollux--note buffer 'unsaved "has changed on disk; your unsaved changes are kept, M-x pollux-merge shows all three"))

(defvar pollux--changed nil "Files that are looked at when no minibuffer is in the way.")

(defun pollux--files-changed (params _)
  "Look at the files of PARAMS: others have written them.
Or the companion watches them only from now on."
  (setq pollux--changed (append (mapcar #'pollux--path (plist-get params :uris)) pollux--changed))
  (pollux--look))

(defun pollux--look ()
  "Show what others have written."
  (if (active-minibuffer-window)
      (run-at-time 0.2 nil #'pollux--look)
    (let ((paths (delete-dups pollux--changed)))
      (setq pollux--changed nil)
      (dolist (path paths)
        (when-let ((buffer (find-buffer-visiting path)))
          (with-demoted-errors "[pollux] %S"
            (pollux--refresh (or (buffer-base-buffer buffer) buffer)))))
      (when paths (pollux--touch-files)))))

(defun pollux--refresh (buffer)
  "Show in BUFFER what is on disk, or say why not."
  (let ((path (buffer-file-name buffer)))
    (cond
     ((not (file-exists-p path))
      (unless (equal (with-current-buffer buffer (visited-file-modtime)) -1) ; it never was there
        (pollux--note buffer 'gone "is gone from the disk; its buffer keeps the text")))
     ((and (verify-visited-file-modtime buffer)
           (not (eq (buffer-local-value 'pollux--told buffer) 'gone))))
     ((buffer-modified-p buffer) (pollux--note-unsaved buffer))
     (t (with-current-buffer buffer (setq pollux--told nil))
        (pollux--reload buffer)))))

(defun pollux--began ()
  "Return the text that the current buffer had when it was read or saved last.
That is nil when Emacs does not know any more."
  (let ((text (buffer-substring-no-properties (point-min) (point-max)))
        (list (and (listp buffer-undo-list) buffer-undo-list)) found)
    (with-temp-buffer
      (insert text)
      (while (and list (not found))
        (let ((entry (pop list)))
          (cond
           ((eq (car-safe entry) t) (setq found t))
           ((or (null entry) (markerp (car-safe entry))))
           (t (ignore-errors (primitive-undo 1 (list entry nil)))))))
      (and found (buffer-string)))))

(declare-function ediff-buffers "ediff")
(declare-function ediff-buffers3 "ediff")

;;;###autoload
(defun pollux-merge ()
  "Show in Ediff this buffer's unsaved changes beside what is on disk now.
And beside what it began with, where Emacs knows that."
  (interactive)
  (let* ((file (or buffer-file-name (user-error "This buffer is no file on disk")))
         (mine (current-buffer)) (base (save-restriction (widen) (pollux--began)))
         (side (lambda (name fill)
                 (with-current-buffer (generate-new-buffer (format "%s <%s>" (file-name-nondirectory file) name))
                   (funcall fill)
                   (setq buffer-read-only t)
                   (set-buffer-modified-p nil)
                   (current-buffer))))
         (disk (funcall side "disk" (lambda () (insert-file-contents file))))
         (sides (list disk)))
    (require 'ediff)
    (when base
      (push (funcall side "began" (lambda () (insert base))) sides))
    (let ((forget (list (lambda ()
                          (add-hook 'ediff-cleanup-hook (lambda () (mapc #'kill-buffer (seq-filter #'buffer-live-p sides))) nil t)))))
      (if base
          (ediff-buffers3 disk (car sides) mine forget)
        (ediff-buffers disk mine forget)))))

(provide 'pollux-reload)
;;; pollux-reload.el ends here
