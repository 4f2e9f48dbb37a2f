/** Before the first paint: the colours that were chosen, and that there is a script. */
const root = document.documentElement
const theme = /(?:^|; *)flasher-theme=(light|dark)/.exec(document.cookie)?.[1]
if (theme) root.dataset.theme = theme
root.classList.add('scripted')
