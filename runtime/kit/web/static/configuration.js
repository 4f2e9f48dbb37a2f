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

/** What would be sent, empty where nothing is selected: a list of one has its value always. */
function readChoices(form) {
  const entries = new FormData(form)
  return [entries.get('bty_image_ref') ?? '', entries.get('target_disk_serial') ?? '']
}

function follow(form) {
  const { elements, dataset } = form
  const { boot_mode: mode } = elements
  const isReady = readChoices(form).every((value) => value !== '')
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
  const [image, disk] = readChoices(form)
  detail.parameters.bty_image_ref = image
  detail.parameters.target_disk_serial = disk
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
