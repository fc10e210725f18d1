import{a,b,c,d}from"./c-UT3GLUVD.js";import"./c-V77QZQFJ.js";import"./c-QZHL3ZIC.js";export{d as css,b as cssCompletionSource,c as cssLanguage,a as defineCSSCompletionSource};
