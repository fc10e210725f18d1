;;; pollux-ask.el --- Questions of pollux's  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; A question, such as whether an extension may run, stands in a buffer of its
;; own and waits: it may be long, and nobody who types shall answer it by
;; accident.

;;; Code:

(require 'cl-lib)
(require 'pollux-rpc)
(require 'pollux-diff)

(defface pollux-question-title '((t :inherit bold))
  "The title of a question."
  :group 'pollux)

(defface pollux-question-choice '((t :inherit button))
  "A choice of a question."
  :group 'pollux)

(cl-defstruct (pollux--question (:constructor pollux--make-question))
  title message choices answer buffer window)

(defvar pollux--questions nil "The questions that wait for an answer, oldest first.")
(defvar pollux--asker nil "The timer that shows a question when the user pauses.")
(defvar-local pollux--question nil "The question in this buffer.")

(defvar pollux-question-mode-map
  (let ((map (make-sparse-keymap)))
    (dotimes (i 9)
      (define-key map (number-to-string (1+ i)) #'pollux-choose))
    (define-key map "\t" #'forward-button)
    (define-key map [backtab] #'backward-button)
    (define-key map "n" #'forward-button)
    (define-key map "p" #'backward-button)
    (define-key map "q" #'pollux-choose-nothing)
    (define-key map (kbd "C-c C-k") #'pollux-choose-nothing)
    map)
  "The keys in a question's buffer.")

(define-derived-mode pollux-question-mode special-mode "Question"
  "A question of pollux's: a digit or a button answers it."
  (setq-local revert-buffer-function #'ignore)
  (add-hook 'kill-buffer-hook #'pollux--unanswered nil t))

(defun pollux--unanswered ()
  "Answer the question whose buffer is killed with no choice."
  (when pollux--question
    (pollux--choose pollux--question nil)))

(defun pollux--choose (question choice)
  "Answer QUESTION with CHOICE, a string, or nil for none.
Only the first time counts."
  (when (memq question pollux--questions)
    (setq pollux--questions (delq question pollux--questions))
    (funcall (pollux--question-answer question) (list :choice choice))
    (pollux--put-question-away question)
    (run-at-time 0 nil #'pollux--ask-next)))

(defun pollux--put-question-away (question)
  "Remove the buffer and the windows of QUESTION."
  (let ((buffer (pollux--question-buffer question)) (back (pollux--question-window question)))
    (when (buffer-live-p buffer)
      (let ((mine (eq (window-buffer) buffer)))
        (with-current-buffer buffer (setq pollux--question nil))
        (dolist (window (get-buffer-window-list buffer nil t))
          (quit-window nil window))
        (when (buffer-live-p buffer) (kill-buffer buffer))
        (when (and mine (window-live-p back))
          (select-window back))))))

(defun pollux-choose ()
  "Answer with the choice whose digit was typed."
  (interactive)
  (let* ((question (or pollux--question (user-error "This is no question")))
         (choice (nth (- last-command-event ?1) (pollux--question-choices question))))
    (unless choice
      (user-error "There is no choice %c" last-command-event))
    (pollux--choose question choice)))

(defun pollux-choose-nothing ()
  "Answer the question with none of its choices."
  (interactive)
  (pollux--choose (or pollux--question (user-error "This is no question")) nil))

(defun pollux--question-text (question)
  "Insert QUESTION into the current buffer, with point on no choice."
  (let ((inhibit-read-only t) (i 0))
    (insert (propertize (or (pollux--question-title question) "pollux") 'face 'pollux-question-title)
            "\n\n" (or (pollux--question-message question) "") "\n\n")
    (dolist (choice (pollux--question-choices question))
      (insert (format "  %d  " (cl-incf i)))
      (insert-text-button choice 'face 'pollux-question-choice 'follow-link t
                          'action (lambda (_) (pollux--choose question choice)))
      (insert "\n"))
    (goto-char (point-min))))

(defun pollux--show-question (question)
  "Show QUESTION in a window of its own, and select it."
  (unless (buffer-live-p (pollux--question-buffer question))
    (setf (pollux--question-buffer question) (generate-new-buffer "*pollux question*"))
    (with-current-buffer (pollux--question-buffer question)
      (pollux-question-mode)
      (setq pollux--question question
            header-line-format
            (concat (propertize (format " 1-%d" (length (pollux--question-choices question))) 'face 'pollux-key)
                    " or RET answers  " (propertize "q" 'face 'pollux-key) " answers with nothing"))
      (pollux--question-text question)))
  (let ((back (selected-window))
        (window (display-buffer (pollux--question-buffer question)
                                '((display-buffer-reuse-window display-buffer-at-bottom display-buffer-use-some-window)
                                  (window-height . fit-window-to-buffer)))))
    (unless (eq back window)
      (setf (pollux--question-window question) back))
    (select-window window)))

(defun pollux--ask-next ()
  "Show the oldest question when the user pauses."
  (setq pollux--asker (and (timerp pollux--asker) (memq pollux--asker timer-list) pollux--asker))
  (let ((question (car pollux--questions)))
    (when (and question (not (buffer-live-p (pollux--question-buffer question))))
      (cond
       ((pollux--idle-p) (pollux--show-question question))
       ((and (not (eq pollux-focus 'never)) (not pollux--asker))
        (setq pollux--asker (run-at-time 0.1 nil #'pollux--ask-next)))))))

(defun pollux--ask (params answer)
  "Put the question of PARAMS to the user and tell ANSWER the choice."
  (unless (pollux--screen-p)
    (signal 'pollux-refused '(-32001 "busy: Emacs has no frame")))
  (let ((question (pollux--make-question
                   :title (plist-get params :title) :message (plist-get params :message)
                   :choices (append (plist-get params :choices) nil) :answer answer)))
    (setq pollux--questions (append pollux--questions (list question)))
    (run-at-time 0 nil (lambda ()
                         (pollux--ask-next)
                         (unless (buffer-live-p (pollux--question-buffer question))
                           (message "[pollux] a question waits: %s (M-x pollux-answer)"
                                    (pollux--question-title question)))))))

(defun pollux--taken-back (answer)
  "Take away the question that would have gone to ANSWER."
  (when-let ((question (cl-find answer pollux--questions :key #'pollux--question-answer)))
    (setq pollux--questions (delq question pollux--questions))
    (run-at-time 0 nil (lambda ()
                         (pollux--put-question-away question)
                         (pollux--ask-next)))))

(defun pollux--drop-questions ()
  "Forget all questions: there is nobody to answer any more."
  (let ((all pollux--questions))
    (setq pollux--questions nil)
    (mapc #'pollux--put-question-away all)))

;;;###autoload
(defun pollux-answer ()
  "Show the question that waits for an answer."
  (interactive)
  (pollux--show-question (or (car pollux--questions) (user-error "No question waits"))))

(add-hook 'pollux--cancel-functions #'pollux--taken-back)

(provide 'pollux-ask)
;;; pollux-ask.el ends here
