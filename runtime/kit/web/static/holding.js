/** Forms that change something are not sent while the server cannot be reached: the page, and what was typed, would be gone. */
const SENDS = 'form[method="post"]:not(.theme)'

/** The banner that says so; null: the server answers. */
let banner = null

function mark(button) {
  if (button.type !== 'submit' || button.hasAttribute('data-held')) return
  button.dataset.held = button.title
  button.title = banner.dataset.held
  button.setAttribute('aria-disabled', 'true')
}

function release(button) {
  button.title = button.dataset.held
  if (button.title === '') button.removeAttribute('title')
  button.removeAttribute('aria-disabled')
  delete button.dataset.held
}

/** Holds all forms back as long as `reason`, a banner with `data-held`, is shown; null sends them again. */
export function hold(reason) {
  banner = reason
  if (banner === null) {
    document.querySelectorAll('button[data-held]').forEach(release)
    return
  }
  for (const form of document.querySelectorAll(SENDS)) [...form.elements].forEach(mark)
}

/** The form that a click or a key would send; null: it sends none that changes something. */
function findSent({ type, target }) {
  if (type === 'submit') return target.closest(SENDS)
  const button = target.closest('button')
  return button?.type === 'submit' ? (button.form?.closest(SENDS) ?? null) : null
}

/** A stream can be lost where requests still arrive, as behind a proxy: the server is asked, not believed gone. */
async function answers() {
  try {
    const init = { cache: 'no-store', signal: AbortSignal.timeout(3000) }
    return (await fetch('/healthz', init)).ok
  } catch {
    return false
  }
}

async function sendAnyway(form, button) {
  if (!(await answers())) return
  banner = null
  document.querySelectorAll('button[data-held]').forEach(release)
  if (button === null) form.requestSubmit()
  else button.click()
}

function refuse(event) {
  const form = banner === null ? null : findSent(event)
  if (form === null) return
  event.preventDefault()
  event.stopImmediatePropagation()
  const spoken = document.querySelector('#spoken')
  if (spoken !== null) spoken.textContent = banner.dataset.held
  banner.scrollIntoView({ block: 'nearest' })
  sendAnyway(form, event.type === 'click' ? event.target.closest('button') : event.submitter)
}

export function startHolding() {
  for (const kind of ['click', 'submit']) document.addEventListener(kind, refuse, true)
}
