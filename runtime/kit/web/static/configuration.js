/** The form of a machine: an image and a disk select "Flash once", unless a mode was chosen by hand. */
import { refreshParts } from './news.js'

const spoken = document.querySelector('#spoken')

let isChosen = false
/** The mode before one was selected here, empty if there was none; null: none was selected here. */
let before = null

function onChange({ target }) {
  const form = target.closest?.('#configuration') ?? null
  if (form === null) return
  if (target.name === 'boot_mode') isChosen = true
  if (!isChosen && ['bty_image_ref', 'target_disk_serial'].includes(target.name)) follow(form)
}

function follow({ elements, dataset }) {
  const { boot_mode: mode, bty_image_ref: image, target_disk_serial: disk } = elements
  const isReady = image.value !== '' && disk.value !== ''
  if (isReady && !mode.value.startsWith('flasher-flash')) {
    before = mode.value
    mode.value = 'flasher-flash-once'
    spoken.textContent = dataset.modeSelected
  } else if (!isReady && before !== null) {
    if (before === '') elements.namedItem('boot_mode').forEach((each) => (each.checked = false))
    else mode.value = before
    before = null
  }
}

/** A refresh of the page says what is selected, so that the lists come back with it. */
function onRequest({ target, detail }) {
  const form = document.querySelector('#configuration[data-dirty]')
  if (target.id !== 'now' || form === null) return
  const { bty_image_ref: image, target_disk_serial: disk } = form.elements
  detail.parameters.bty_image_ref = image.value
  detail.parameters.target_disk_serial = disk.value
}

/** The list of disks did not replace a field in which somebody was typing. */
function onLeave({ target }) {
  if (target.matches?.('.follows [type=text]')) refreshParts()
}

export function startConfiguration() {
  document.addEventListener('change', onChange)
  document.addEventListener('htmx:configRequest', onRequest)
  document.addEventListener('focusout', onLeave)
}
