;;; pollux-unified.el --- A proposal with its changes inline  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The layout `unified': the proposal alone, to be edited, with the lines that
;; it takes away between its own.  They are overlays: no text but the proposal's
;; is in the buffer.

;;; Code:

(require 'cl-lib)
(require 'pollux-diff)

(defvar ediff-diff-program)

(defface pollux-added '((t :inherit diff-added :extend t))
  "A line that the proposal adds."
  :group 'pollux)

(defface pollux-gone '((t :inherit diff-removed :extend t))
  "A line that the proposal takes away."
  :group 'pollux)

(defvar-local pollux--changes nil
  "The changes as they are drawn, each a list (START END OLD).
START and END are positions of the proposal's lines, OLD the text before.")
(defvar-local pollux--redraw nil "The timer that draws what was typed.")

(defvar pollux-unified-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-n") #'pollux-next-change)
    (define-key map (kbd "C-c C-p") #'pollux-previous-change)
    (define-key map (kbd "C-c C-u") #'pollux-take-back)
    map)
  "The keys in a proposal with its changes inline.")

(define-minor-mode pollux-unified-mode
  "A proposal with the lines that it takes away between its own.
\\<pollux-unified-mode-map>\\[pollux-next-change] and \\[pollux-previous-change] go to changes, \\[pollux-take-back] takes one back."
  :lighter nil
  (when pollux-unified-mode
    (setq-local left-margin-width 2)
    (add-hook 'after-change-functions #'pollux--redraw-soon nil t)))

(defun pollux--unified-p (diff)
  "Return non-nil when DIFF is on show with its changes inline."
  (let ((right (pollux--diff-right diff)))
    (and (buffer-live-p right) (buffer-local-value 'pollux-unified-mode right))))

(defun pollux--unified-wanted-p (diff)
  "Return non-nil when DIFF is to be shown with its changes inline.
Texts of more than 20000 lines are too long to be compared while they are typed."
  (and (eq pollux-layout 'unified)
       (< (max (cl-count ?\n (pollux--diff-old diff)) (cl-count ?\n (pollux--text diff))) 20000)))

;;;; What differs

(defun pollux--write-lines (buffer file)
  "Write the whole text of BUFFER into FILE."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (let ((coding-system-for-write 'utf-8-emacs-unix) (write-region-inhibit-fsync t))
        (write-region (point-min) (point-max) file nil 'quiet)))))

(defun pollux--line-start (line)
  "Return where LINE, counted from 1, begins; the end behind the last one."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- line))
    (point)))

(defun pollux--difference (match first last command empty)
  "Return the beginning and end of lines FIRST to LAST, as diff wrote MATCH.
With COMMAND equal to EMPTY it is the place behind line FIRST."
  (let ((first (string-to-number (match-string first match)))
        (last (and (match-string last match) (string-to-number (match-string last match)))))
    (if (equal command empty)
        (list (pollux--line-start (1+ first)) (pollux--line-start (1+ first)))
      (list (pollux--line-start first) (pollux--line-start (1+ (or last first)))))))

(defun pollux--line-count (buffer)
  "Return how many lines the whole text of BUFFER has."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (count-lines (point-min) (point-max)))))

(defun pollux--only-hunk (left right)
  "Return what diff would say of buffers LEFT and RIGHT, nil unless one is empty."
  (let ((old (pollux--line-count left)) (new (pollux--line-count right)))
    (cond ((and (= old 0) (= new 0)) "")
          ((= old 0) (format "0a1,%d\n" new))
          ((= new 0) (format "1,%dd0\n" old)))))

(defun pollux--insert-hunks (left right)
  "Insert what diff says of buffers LEFT and RIGHT."
  (let ((old (make-temp-file "pollux-old")) (new (make-temp-file "pollux-new")))
    (unwind-protect
        (progn
          (pollux--write-lines left old)
          (pollux--write-lines right new)
          (call-process ediff-diff-program nil t nil "--text" old new))
      (delete-file old)
      (delete-file new))))

(defun pollux--differences (left right)
  "Return the changes from buffer LEFT to buffer RIGHT, as in `pollux--changes'."
  (with-temp-buffer
    (if-let ((hunk (pollux--only-hunk left right)))
        (insert hunk)
      (pollux--insert-hunks left right))
    (goto-char (point-min))
    (let (all)
      (while (re-search-forward "^\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?\\([acd]\\)\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?$" nil t)
        (let* ((match (match-string 0)) (command (match-string 3)))
          (string-match "\\`\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?[acd]\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?\\'" match)
          (push (append
                 (with-current-buffer right
                   (save-restriction (widen) (pollux--difference match 3 4 command "d")))
                 (list (with-current-buffer left
                         (apply #'buffer-substring-no-properties (pollux--difference match 1 2 command "a")))))
                all)))
      (nreverse all))))

;;;; What is seen of it

(defun pollux--beside (mark face)
  "Return what shows MARK with FACE in the margin."
  (propertize " " 'display `((margin left-margin) ,(propertize mark 'face face))))

(defun pollux--gone-text (old)
  "Return OLD as it is shown between the lines of a proposal."
  (mapconcat (lambda (line) (concat (pollux--beside "- " 'pollux-gone) (propertize line 'face 'pollux-gone)))
             (split-string (string-remove-suffix "\n" old) "\n") "\n"))

(defun pollux--draw-change (start end old)
  "Draw the change of what was OLD between START and END."
  (let ((gone (if (string-empty-p old) "" (pollux--gone-text old))))
    (cond ((string-empty-p gone))
          ((and (= start (point-max)) (> start (point-min)) (/= (char-before start) ?\n))
           (setq gone (concat "\n" gone))) ; behind a last line without an end
          (t (setq gone (concat gone "\n"))))
    (save-excursion
      (goto-char start)
      (let ((first t))
        (while (or first (and (< (point) end) (not (eobp))))
          (let ((overlay (make-overlay (point) (min end (line-beginning-position 2)))))
            (overlay-put overlay 'pollux-unified t)
            (overlay-put overlay 'face 'pollux-added)
            (overlay-put overlay 'before-string
                         (concat (and first gone) (and (< start end) (pollux--beside "+ " 'pollux-added)))))
          (setq first nil)
          (forward-line 1))))))

(defun pollux--draw (diff)
  "Draw the changes of DIFF as they are now."
  (let ((changes (pollux--differences (pollux--diff-left diff) (pollux--diff-right diff))))
    (with-current-buffer (pollux--diff-right diff)
      (setq pollux--changes changes)
      (save-restriction
        (widen)
        (remove-overlays nil nil 'pollux-unified t)
        (pcase-dolist (`(,start ,end ,old) changes)
          (pollux--draw-change start end old)))
      (force-mode-line-update))))

(defun pollux--redraw-soon (&rest _)
  "Draw what has changed when nothing else is to be done."
  (unless (timerp pollux--redraw)
    (let ((buffer (current-buffer)))
      (setq pollux--redraw
            (run-at-time 0.1 nil
                         (lambda ()
                           (when (buffer-live-p buffer)
                             (with-current-buffer buffer
                               (setq pollux--redraw nil)
                               (when-let ((diff (pollux--find pollux--id)))
                                 (pollux--draw diff))))))))))

(defun pollux--inline-change ()
  "Return at which change point is, \"\" where there is none."
  (let ((all (length pollux--changes)) (at (cl-count-if (lambda (change) (<= (car change) (point))) pollux--changes)))
    (cond ((= all 0) "")
          ((> at 0) (format "  change %d/%d" at all))
          (t (format "  %d change%s" all (if (= all 1) "" "s"))))))

(defun pollux--show-unified (diff)
  "Show the proposal of DIFF, whose buffers are there, alone."
  (let ((ignore-window-parameters t))
    (delete-other-windows))
  (set-window-dedicated-p nil nil)
  (with-current-buffer (pollux--diff-right diff)
    (unless pollux-unified-mode
      (pollux-unified-mode 1) ; before a window shows it, whose margin is the buffer's
      (pollux--draw diff)
      (goto-char (or (caar pollux--changes) (point-min)))))
  (switch-to-buffer (pollux--diff-right diff) nil 'force-same-window))

;;;; Commands

(defun pollux-next-change ()
  "Go to the next change of the proposal."
  (interactive)
  (goto-char (or (car (cl-find-if (lambda (change) (> (car change) (point))) pollux--changes))
                 (user-error "There is no change below"))))

(defun pollux-previous-change ()
  "Go to the change of the proposal before this one."
  (interactive)
  (goto-char (or (car (cl-find-if (lambda (change) (< (car change) (line-beginning-position))) pollux--changes :from-end t))
                 (user-error "There is no change above"))))

(defun pollux-take-back ()
  "Take the change at point back: the file's lines stand."
  (interactive "*")
  (let ((diff (or (pollux--find pollux--id) (user-error "This is no diff"))))
    (pollux--draw diff)
    (pcase (cl-find-if (lambda (change)
                         (if (= (car change) (nth 1 change))
                             (<= (line-beginning-position) (car change) (line-beginning-position 2))
                           (and (<= (car change) (point)) (or (< (point) (nth 1 change)) (= (point) (nth 1 change) (point-max))))))
                       pollux--changes)
      (`(,start ,end ,old)
       (goto-char start)
       (delete-region start end)
       (save-excursion
         (unless (bolp) (insert "\n"))
         (insert old))
       (pollux--draw diff))
      (_ (user-error "No change here")))))

(provide 'pollux-unified)
;;; pollux-unified.el ends here
