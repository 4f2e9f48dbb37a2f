/** What pages do beyond links and forms. Without it, all of them still work. */
import { startAges } from './ages.js'
import { startKeys } from './keys.js'
import { startLive } from './live.js'
import { startSelection } from './selection.js'

const spoken = document.querySelector('#spoken')

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy)
  button.classList.add('copied')
  spoken.textContent = 'Copied'
  setTimeout(() => button.classList.remove('copied'), 1500)
}

/** Plain HTTP pages may not use the clipboard: then the text is selected for the person to copy. */
function select(button) {
  const code = button.parentElement?.querySelector('code')
  if (code) getSelection().selectAllChildren(code)
  spoken.textContent = 'Selected'
}

/** At once, and remembered; the form does the same with a new page. */
function setTheme(event) {
  const button = event.submitter
  if (!event.target.matches('.theme') || button === null) return
  event.preventDefault()
  const theme = button.value
  document.cookie = `flasher-theme=${theme}; Path=/; Max-Age=31536000; SameSite=Lax`
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  for (const each of event.target.elements) {
    if (each.name === 'theme') each.setAttribute('aria-pressed', String(each === button))
  }
}

function filter(input) {
  const words = input.value.toLowerCase().split(/\s+/)
  for (const option of document.querySelectorAll(`${input.dataset.filter} [data-keywords]`)) {
    const text = option.dataset.keywords.toLowerCase()
    const isPicked = option.querySelector(':checked') !== null
    option.hidden = !isPicked && !words.every((word) => text.includes(word))
  }
}

function onClick(event) {
  const button = event.target.closest('button, a')
  if (button === null) return
  if (button.dataset.copy !== undefined) copy(button).catch(() => select(button))
  if (button.dataset.open !== undefined) document.querySelector(button.dataset.open)?.showModal()
  const dialog = button.closest('dialog')
  if (dialog !== null && button.dataset.close !== undefined) {
    event.preventDefault()
    dialog.close()
  }
}

/** A question that the server asks is put over the page that led to it. */
function onSwap({ detail: { target, xhr } }) {
  if (target?.id !== 'dialog') return
  if (target.firstElementChild === null) {
    location.assign(xhr.responseURL)
    return
  }
  if (!target.open) target.showModal()
  target.querySelector('[data-close]')?.focus()
}

/** A refusal is an answer to a form; of a page that follows the server it says nothing new. */
function onAnswer({ detail }) {
  if (detail.target?.id === 'dialog' && detail.xhr.status < 500) detail.shouldSwap = true
}

/** What is being edited is not replaced by news (`live.js`). */
function onInput(event) {
  event.target.closest('form:not(#bulk)')?.setAttribute('data-dirty', '')
  if (event.target.dataset.filter !== undefined) filter(event.target)
}

document.addEventListener('click', onClick)
document.addEventListener('submit', setTheme)
document.addEventListener('input', onInput)
document.addEventListener('htmx:beforeSwap', onAnswer)
document.addEventListener('htmx:afterSwap', onSwap)
startAges()
startSelection()
startKeys()
startLive()
