;;; pollux-past.el --- Past proposals, and the rules  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; `pollux-history' shows what was proposed before, `pollux-undo' takes an
;; accepted change back, `pollux-rules' lists and changes the rules.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'pollux-rpc)
(require 'pollux-diff)

(declare-function pollux--files-changed "pollux-reload")

(defun pollux--ask-companion (command argument then)
  "Run COMMAND with ARGUMENT, a plist or nil; THEN gets what comes of it."
  (pollux--check-ready)
  (pollux--call "workspace/executeCommand"
                (append (list :command command) (and argument (list :arguments (vector argument))))
                then))

(defun pollux--choose-one (prompt items label none then)
  "Have the user choose one of ITEMS by PROMPT, each shown as LABEL of it.
THEN gets it; NONE is said where there is none."
  (if (not items)
      (message "[pollux] %s" none)
    (run-at-time 0 nil ; not within what has read the companion's answer
                 (lambda ()
                   (let* ((names (mapcar label items))
                          (table (lambda (string predicate action)
                                   (if (eq action 'metadata) '(metadata (display-sort-function . identity) (cycle-sort-function . identity))
                                     (complete-with-action action names string predicate))))
                          (name (completing-read prompt table nil t nil nil (car names))))
                     (funcall then (nth (cl-position name names :test #'equal) items)))))))

(defun pollux--past-label (entry)
  "Return a line about ENTRY, a past proposal."
  (format "%s  %s  %s%s%s%s  %s"
          (replace-regexp-in-string "T" " " (substring (plist-get entry :at) 0 19))
          (file-relative-name (plist-get entry :path))
          (plist-get entry :outcome)
          (if (eq (plist-get entry :edited) t) ", edited" "")
          (if (eq (plist-get entry :policy) t) ", by a rule" "")
          (if (eq (plist-get entry :undone) t) ", undone" "")
          (plist-get entry :owner)))

(defun pollux--past-side (entry side text)
  "Return a buffer with TEXT, the SIDE of ENTRY."
  (with-current-buffer (get-buffer-create (format "%s <%s, past>" (file-name-nondirectory (plist-get entry :path)) side))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text))
    (set-buffer-modified-p nil)
    (setq buffer-read-only t)
    (current-buffer)))

(defun pollux--show-past (entry)
  "Show ENTRY, a past proposal, in Ediff."
  (pollux--ask-companion
   "pollux.history" (list :id (plist-get entry :id))
   (lambda (texts)
     (run-at-time 0 nil #'ediff-buffers
                  (pollux--past-side entry "before" (plist-get texts :oldText))
                  (pollux--past-side entry (plist-get entry :outcome) (plist-get texts :finalText))))))

;;;###autoload
(defun pollux-history ()
  "Choose one of the past proposals, and show it in Ediff."
  (interactive)
  (pollux--ask-companion
   "pollux.history" nil
   (lambda (result)
     (pollux--choose-one "Past proposal: " (append (plist-get result :entries) nil) #'pollux--past-label
                         "nothing was proposed here yet" #'pollux--show-past))))

;;;###autoload
(defun pollux-undo ()
  "Choose one of the changes that were accepted, and take it back."
  (interactive)
  (pollux--ask-companion
   "pollux.history" nil
   (lambda (result)
     (pollux--choose-one
      "Undo: "
      (cl-remove-if-not (lambda (entry) (and (eq (plist-get entry :undoable) t) (not (eq (plist-get entry :undone) t))))
                        (append (plist-get result :entries) nil))
      #'pollux--past-label "there is nothing to undo"
      (lambda (entry)
        (pollux--ask-companion
         "pollux.undo" (list :id (plist-get entry :id))
         (lambda (_)
           (pollux--files-changed (list :uris (vector (pollux--uri (plist-get entry :path)))) nil)
           (message "[pollux] %s has its earlier text again" (file-name-nondirectory (plist-get entry :path))))))))))

(defun pollux--rule-about (rule)
  "Return what RULE is about."
  (or (plist-get rule :pattern) (plist-get rule :owner) "everything"))

;;;###autoload
(defun pollux-rules ()
  "Choose one of the rules, the newest first, and change it."
  (interactive)
  (pollux--ask-companion
   "pollux.status" nil
   (lambda (status)
     (pollux--choose-one
      "Rule: " (nreverse (append (plist-get status :rules) nil))
      (lambda (rule) (format "%-8s  %s" (plist-get rule :mode) (pollux--rule-about rule)))
      "there is no rule: you are asked about everything"
      (lambda (rule)
        (let ((policy (completing-read (format "%s: " (pollux--rule-about rule)) '("ask" "accept" "terminal") nil t nil nil "ask")))
          (pollux--ask-companion
           "pollux.setPolicy"
           (append (list :policy policy)
                   (cond ((plist-get rule :pattern) (list :scope "pattern" :pattern (plist-get rule :pattern)))
                         ((plist-get rule :owner) (list :scope "session" :session (plist-get rule :owner)))))
           (lambda (_) (message "[pollux] %s: %s" policy (pollux--rule-about rule))))))))))

(provide 'pollux-past)
;;; pollux-past.el ends here
