/** A form that takes a moment says so, and is not sent twice; without a script it is sent as it is. */
function onSubmit(event) {
  const button = event.target.querySelector('button[data-busy]')
  if (button === null) return
  if (button.hasAttribute('aria-busy')) {
    event.preventDefault()
    return
  }
  button.dataset.idle = button.textContent
  button.textContent = button.dataset.busy
  button.setAttribute('aria-busy', 'true')
}

/** Who comes back to the page by the browser's history can send it again. */
function onShow() {
  for (const button of document.querySelectorAll('button[aria-busy]')) {
    button.textContent = button.dataset.idle
    button.removeAttribute('aria-busy')
  }
}

document.addEventListener('submit', onSubmit)
addEventListener('pageshow', onShow)
