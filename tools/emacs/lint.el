;;; lint.el --- What must hold for plugins/emacs  -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs -Q --batch -l tools/emacs/lint.el, in the repository's root: compiles
;; with warnings as errors, then checkdoc, then package-lint, which Debian
;; has as elpa-package-lint.

;;; Code:

(require 'bytecomp)
(require 'checkdoc)

(dolist (dir (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa-src/*"))
  (add-to-list 'load-path dir))

(let* ((dir (expand-file-name "plugins/emacs"))
       (files (directory-files dir t "\\.el\\'"))
       (byte-compile-error-on-warn t)
       (byte-compile-dest-file-function (lambda (_) (make-temp-file "pollux-lint")))
       (checkdoc-verb-check-experimental-flag nil)
       (checkdoc-spellcheck-documentation-flag nil)
       (findings 0))
  (add-to-list 'load-path dir)
  (dolist (file files)
    (unless (byte-compile-file file)
      (setq findings (1+ findings))))
  (let ((checkdoc-create-error-function
         (lambda (text start _end &optional _unfixable)
           (setq findings (1+ findings))
           (message "%s:%d: %s" (file-relative-name (buffer-file-name))
                    (line-number-at-pos start) text)
           nil)))
    (dolist (file files)
      (with-current-buffer (find-file-noselect file)
        (checkdoc-current-buffer t))))
  (unless (= findings 0)
    (message "%d findings" findings)
    (kill-emacs 1))
  (require 'package-lint)
  (defvar package-lint-main-file)
  (setq package-lint-main-file (expand-file-name "pollux.el" dir)
        command-line-args-left files)
  (package-lint-batch-and-exit))

;;; lint.el ends here
