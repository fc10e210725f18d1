;;; pollux-check.el --- What Flymake and Flycheck find  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The CLI may ask what the editor's tools find in a file.  What is told is all
;; that Flymake, Eglot's included, or Flycheck know of it.  Where none of them
;; is on, nothing is told, and the CLI hears that it is not known.

;;; Code:

(require 'cl-lib)
(require 'pollux-rpc)
(require 'pollux-context)

(declare-function flymake-diagnostics "ext:flymake")
(declare-function flymake-diagnostic-beg "ext:flymake")
(declare-function flymake-diagnostic-end "ext:flymake")
(declare-function flymake-diagnostic-text "ext:flymake")
(declare-function flymake-diagnostic-type "ext:flymake")
(declare-function flymake-diagnostic-backend "ext:flymake")
(declare-function flymake--severity "ext:flymake")
(declare-function flycheck-error-level "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-error-checker "ext:flycheck")
(declare-function flycheck-error-region-for-mode "ext:flycheck")
(declare-function warning-numeric-level "warnings")
(defvar flycheck-current-errors)

(defvar pollux--checked nil "Buffers that a tool has looked at since they were told.")
(defvar pollux--check-timer nil "The timer that tells of them, nil when none is due.")
(defvar-local pollux--check-path nil "The file that was told of in this buffer.")

(defun pollux--finding (beg end severity source message)
  "Return what was found from BEG to END as LSP has it.
With SEVERITY, SOURCE and MESSAGE."
  (list :range (list :start (pollux--position beg) :end (pollux--position (or end beg)))
        :severity severity :source (format "%s" source) :message (pollux--sayable (or message ""))))

(defun pollux--flymake-finding (diagnostic)
  "Return DIAGNOSTIC, of Flymake's, as LSP has it."
  (pollux--finding (flymake-diagnostic-beg diagnostic) (flymake-diagnostic-end diagnostic)
                   (let ((level (flymake--severity (flymake-diagnostic-type diagnostic))))
                     (cond ((>= level (warning-numeric-level :error)) 1) ((>= level (warning-numeric-level :warning)) 2) (t 3)))
                   (or (flymake-diagnostic-backend diagnostic) "flymake") (flymake-diagnostic-text diagnostic)))

(defun pollux--flycheck-finding (err)
  "Return ERR, of Flycheck's, as LSP has it."
  (let ((region (flycheck-error-region-for-mode err 'symbols)))
    (pollux--finding (or (car region) (point-min)) (cdr region)
                     (pcase (flycheck-error-level err) ('error 1) ('warning 2) (_ 3))
                     (flycheck-error-checker err) (flycheck-error-message err))))

(defun pollux--findings ()
  "Return what the tools find in the current buffer, a vector.
That is nil where none is on."
  (cond
   ((bound-and-true-p flycheck-mode) (vconcat (mapcar #'pollux--flycheck-finding flycheck-current-errors)))
   ((bound-and-true-p flymake-mode) (vconcat (mapcar #'pollux--flymake-finding (flymake-diagnostics))))))

(defun pollux--tell-findings ()
  "Tell what was found in the buffers that were looked at."
  (setq pollux--check-timer nil)
  (let ((buffers pollux--checked))
    (setq pollux--checked nil)
    (dolist (buffer (and pollux--ready buffers))
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (when-let ((path (pollux--file buffer)))
            (setq pollux--check-path path)
            (pollux--notify "pollux/didChangeDiagnostics"
                            (list :uri (pollux--uri path) :diagnostics (ignore-errors (pollux--findings))))))))))

(defun pollux--checked (&rest _)
  "Note that a tool has looked at the current buffer."
  (cl-pushnew (current-buffer) pollux--checked)
  (unless pollux--check-timer
    (setq pollux--check-timer (run-at-time 0.2 nil #'pollux--tell-findings))))

(defun pollux--forget-findings ()
  "Tell that nothing is known any more of the current buffer's file."
  (when (and pollux--check-path pollux--ready)
    (pollux--notify "pollux/didChangeDiagnostics" (list :uri (pollux--uri pollux--check-path) :diagnostics nil))))

(defun pollux--check-all ()
  "Tell what is known of all buffers, to a companion that has just started."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (or (bound-and-true-p flycheck-mode) (bound-and-true-p flymake-mode))
        (pollux--checked)))))

(defun pollux--listen-to-tools (on)
  "Listen to the tools while ON is non-nil."
  (if on
      (progn
        (advice-add 'flymake--handle-report :after #'pollux--checked) ; also before it is loaded
        (add-hook 'flycheck-after-syntax-check-hook #'pollux--checked)
        (add-hook 'flycheck-mode-hook #'pollux--checked)
        (add-hook 'flymake-mode-hook #'pollux--checked)
        (add-hook 'kill-buffer-hook #'pollux--forget-findings))
    (advice-remove 'flymake--handle-report #'pollux--checked)
    (dolist (hook '(flycheck-after-syntax-check-hook flycheck-mode-hook flymake-mode-hook))
      (remove-hook hook #'pollux--checked))
    (remove-hook 'kill-buffer-hook #'pollux--forget-findings)))

(provide 'pollux-check)
;;; pollux-check.el ends here
