;;; pollux-context.el --- What the CLI may know of where you are  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Open files, the active one, point, the region, and the projects' folders.
;; What is told is one message that says everything anew; it is sent 50 ms
;; after the first of several events, and not when it is equal to the last.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'pollux-rpc)

(declare-function eglot-managed-p "ext:eglot")
(declare-function extract-rectangle "rect")
(declare-function lsp-workspace-root "ext:lsp-mode")
(declare-function project-current "project")
(declare-function project-root "project")
(declare-function project-roots "project")
(defvar eglot-lsp-context)
(defvar evil-state)
(defvar evil-visual-beginning)
(defvar evil-visual-end)

(defcustom pollux-cli "gemini"
  "The CLI's program, by name or path."
  :type 'string
  :group 'pollux)

(defcustom pollux-roots-function #'pollux-project-root
  "Returns the folder of the project that the current buffer belongs to.
It is called in a buffer that visits a file; nil stands for none."
  :type 'function
  :group 'pollux)

(defconst pollux--limit (+ 16384 512)
  "The largest selection that is told, in UTF-16 units.")

(defvar pollux--last nil "The context that was told last.")
(defvar pollux--last-file nil "The last one with a file.")
(defvar pollux--timer nil "The timer of the next context, nil when none is due.")
(defvar pollux--files nil "The open files as URIs; t when they must be looked for.")
(defvar pollux--roots nil "The folders that were told last.")
(defvar pollux--roots-timer nil "The timer that looks for folders, nil when none is due.")
(defvar pollux--known-roots (make-hash-table :test #'equal)
  "The projects of folders, and when that was found out.")
(defvar-local pollux-cli-buffer nil
  "Non-nil in the CLI's own terminal: the last file stays active there.")

;;;; Files

(defun pollux--uri (path)
  "Return the file: URI of PATH."
  (concat "file://" (if (string-prefix-p "/" path) "" "/")
          (mapconcat (lambda (byte)
                       (if (or (<= ?a byte ?z) (<= ?A byte ?Z) (<= ?0 byte ?9) (memq byte '(?/ ?: ?- ?. ?_ ?~)))
                           (string byte)
                         (format "%%%02X" byte)))
                     (encode-coding-string path 'utf-8) "")))

(defun pollux--path (uri)
  "Return the path of the file: URI."
  (let ((path (decode-coding-string
               (replace-regexp-in-string "%[[:xdigit:]][[:xdigit:]]"
                                         (lambda (hex) (unibyte-string (string-to-number (substring hex 1) 16)))
                                         (encode-coding-string (string-remove-prefix "file://" uri) 'utf-8) t t)
               'utf-8)))
    (if (string-match-p "\\`/[[:alpha:]]:" path) (substring path 1) path)))

(defun pollux--file (buffer &optional missing)
  "Return the path that BUFFER visits, nil when it is none of the user's files.
With MISSING it need not be there."
  (when-let ((path (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (and (not (file-remote-p path))
         (not (string-match-p "/\\.git/" path))
         (or (file-regular-p path) (and missing (not (file-exists-p path))))
         (expand-file-name path))))

(defun pollux--open-files ()
  "Return the URIs of the open files."
  (when (eq pollux--files t)
    (setq pollux--files
          (vconcat (delete-dups
                    (delq nil (mapcar (lambda (buffer)
                                        ;; The companion looks which are there, and watches them.
                                        (when-let ((path (pollux--file buffer t)))
                                          (pollux--uri path)))
                                      (buffer-list)))))))
  pollux--files)

(defun pollux--forget-files ()
  "Note that buffers came or went."
  (setq pollux--files t))

;;;; Positions

(defun pollux--units (string)
  "Return the number of UTF-16 units of STRING."
  (let ((n (length string)))
    (unless (= n (string-bytes string))
      (mapc (lambda (c) (when (<= #x10000 c #x10ffff) (cl-incf n))) string))
    n))

(defun pollux--position (point)
  "Return POINT as LSP has it, whatever the buffer is narrowed to."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char point)
      (list :line (1- (line-number-at-pos nil t))
            :character (pollux--units (buffer-substring-no-properties (line-beginning-position) point))))))

(defun pollux--region ()
  "Return start, end and text of what is selected in the current buffer."
  (cond
   ((and (bound-and-true-p evil-local-mode) (eq (bound-and-true-p evil-state) 'visual)
         (markerp evil-visual-beginning))
    ;; Evil's region lacks the character that point is on.
    (let ((start (marker-position evil-visual-beginning)) (end (marker-position evil-visual-end)))
      (if (eq (bound-and-true-p evil-visual-selection) 'block)
          (list start end (pollux--rectangle start end))
        (list start end))))
   ((use-region-p)
    (let ((start (region-beginning)) (end (region-end)))
      (if (bound-and-true-p rectangle-mark-mode)
          (list start end (pollux--rectangle start end))
        (list start end))))))

(defun pollux--rectangle (start end)
  "Return the text of the rectangle from START to END."
  (string-join (mapcar #'substring-no-properties (extract-rectangle start end)) "\n"))

(defun pollux--selection ()
  "Return the active region of the current buffer, nil when there is none."
  (pcase-let* ((`(,start ,end ,text) (pollux--region)))
    (when start
      (unless text
        (setq text (buffer-substring-no-properties start (min end (+ start pollux--limit)))))
      (unless (string-empty-p text)
        (list :start (pollux--position start) :end (pollux--position end)
              :text (pollux--sayable (if (> (length text) pollux--limit)
                                         (substring text 0 pollux--limit)
                                       text)))))))

;;;; Where the user is

(defun pollux--runs-cli-p (buffer)
  "Return non-nil when the terminal in BUFFER has the CLI in its foreground."
  (when-let* ((process (get-buffer-process buffer))
              (own (and (process-live-p process) (process-id process))))
    (let ((front (process-running-child-p process)))
      (string-match-p (concat "\\(?:\\`\\|[ /]\\)" (regexp-quote (file-name-nondirectory pollux-cli)) "\\(?:[ .]\\|\\'\\)")
                      (or (alist-get 'args (process-attributes (if (integerp front) front own))) "")))))

(defun pollux--terminal-of-cli-p (buffer)
  "Return non-nil when BUFFER is the terminal of the CLI."
  (or (buffer-local-value 'pollux-cli-buffer buffer)
      (with-current-buffer buffer
        (and (derived-mode-p 'term-mode 'vterm-mode 'eat-mode 'eshell-mode 'comint-mode)
             (or (let ((case-fold-search t)) (string-match-p "\\`\\*gemini" (buffer-name)))
                 (pollux--runs-cli-p buffer))))))

(defun pollux--stays-p (buffer)
  "Return non-nil when the file from before stays the active one in BUFFER."
  (or (minibufferp buffer) (pollux--terminal-of-cli-p buffer)))

(defun pollux--kept (context)
  "Return CONTEXT, as far as its file is still open."
  (let* ((uri (plist-get (plist-get context :textDocument) :uri))
         (open (pollux--open-files))
         (still (or (not uri) (and (cl-find uri open :test #'equal)
                                   (file-regular-p (pollux--path uri))))))
    (and context
         (if still
             (plist-put (copy-sequence context) :openDocuments open)
           (list :textDocument nil :openDocuments open)))))

(defun pollux--context (&optional first)
  "Return what there is to tell now, nil when nothing is.
With FIRST, in the CLI's terminal, what is told is the file that the user was
in before: a companion that has just started knows of none."
  (let* ((window (selected-window))
         (buffer (window-buffer window))
         (stays (pollux--stays-p buffer)))
    (when (and first stays)
      (setq buffer (or (cl-find-if #'pollux--file (buffer-list)) buffer)
            window (get-buffer-window buffer)
            stays (pollux--stays-p buffer)))
    (let ((path (pollux--file buffer)))
      (cond
       (stays (pollux--kept (if (minibufferp buffer) pollux--last pollux--last-file)))
       ((not path) (list :textDocument nil :openDocuments (pollux--open-files)))
       (t
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
      (when (plist-get context :textDocument)
        (setq pollux--last-file context))
      (unless (equal context pollux--last)
        (setq pollux--last context)
        (pollux--notify "pollux/didChangeContext" context)))))

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
  (unless pollux--roots-timer
    (setq pollux--roots-timer (run-at-time 0.1 nil #'pollux--tell-folders))))

;;;; Projects

(defun pollux-project-root ()
  "Return the folder of the current buffer's project, nil for none.
That is the one of its language server, else project.el's, else the nearest
folder above that holds \".git\"."
  (or (ignore-errors
        (cond ((and (fboundp 'eglot-managed-p) (eglot-managed-p))
               (let ((eglot-lsp-context t)) (pollux--project-of default-directory)))
              ((and (bound-and-true-p lsp-mode) (fboundp 'lsp-workspace-root))
               (lsp-workspace-root))))
      (pollux--cached-root default-directory)))

(defun pollux--project-of (dir)
  "Return project.el's root for DIR, nil for none.
Not before something else has loaded it, which takes a while."
  (when-let ((project (and (featurep 'project) (project-current nil dir))))
    (if (fboundp 'project-root)
        (project-root project)
      (car (with-no-warnings (project-roots project))))))

(defun pollux--cached-root (dir)
  "Return the root of the project that DIR is in, as found within half a minute."
  (pcase-let ((`(,when . ,root) (gethash dir pollux--known-roots))
              (now (float-time)))
    (if (and when (< (- now when) 30))
        root
      (setq root (or (ignore-errors (pollux--project-of dir))
                     (locate-dominating-file dir ".git")))
      (puthash dir (cons now root) pollux--known-roots)
      root)))

(defun pollux--start-folder ()
  "Return the folder that Emacs was started in, nil for none of interest."
  (let ((start command-line-default-directory))
    (and start (file-accessible-directory-p start) (not (file-remote-p start))
         (expand-file-name start))))

(defun pollux--find-roots ()
  "Return the projects' folders.
Those of all open files, and the one that Emacs was started in: the root and
the home folder only as long as there is nothing else."
  (let (roots (start (pollux--start-folder)))
    (cl-flet ((add (dir)
                (setq dir (file-truename (directory-file-name (expand-file-name dir))))
                (unless (cl-some (lambda (root) (file-in-directory-p dir root)) roots)
                  (setq roots (append (cl-remove-if (lambda (root) (file-in-directory-p root dir)) roots)
                                      (list dir))))))
      (dolist (buffer (buffer-list))
        (when (pollux--file buffer)
          (when-let ((root (with-current-buffer buffer (ignore-errors (funcall pollux-roots-function)))))
            (when (and (not (file-remote-p root)) (file-directory-p root))
              (add root)))))
      (when (and start
                 (or (not roots)
                     (not (member (file-name-as-directory start)
                                  (list "/" (file-name-as-directory (expand-file-name "~")))))))
        (add (or (pollux--cached-root start) start))))
    roots))

(defun pollux--folders (roots)
  "Return ROOTS as LSP's workspace folders."
  (vconcat (mapcar (lambda (dir)
                     (list :uri (pollux--uri dir)
                           :name (file-name-nondirectory dir)))
                   roots)))

(defun pollux--tell-folders ()
  "Tell which folders came and went."
  (setq pollux--roots-timer nil)
  (when pollux--ready
    (let* ((now (pollux--find-roots))
           (added (cl-set-difference now pollux--roots :test #'equal))
           (removed (cl-set-difference pollux--roots now :test #'equal)))
      (when (or added removed)
        (setq pollux--roots now)
        (pollux--notify "workspace/didChangeWorkspaceFolders"
                        (list :event (list :added (pollux--folders added)
                                           :removed (pollux--folders removed))))))))

(provide 'pollux-context)
;;; pollux-context.el ends here
