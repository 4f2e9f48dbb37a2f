/** Sets the colour scheme before the first paint, and marks that scripts run. */
const root = document.documentElement
const theme = /(?:^|; *)flasher-theme=(light|dark)/.exec(document.cookie)?.[1]
if (theme) root.dataset.theme = theme
root.classList.add('scripted')
