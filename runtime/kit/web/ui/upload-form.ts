/** A form that uploads files with progress. A form alone cannot resume, so without the script there is none. */
import { attributes, html, type Content, type Html } from './html.ts'

const UPLOADS = {
  label: 'Upload',
  cancel: 'Cancel',
  cancelled: 'Cancelled.',
  checking: 'Checking…',
  progress: '{done} of {total}',
  pace: '{done} of {total}, {rate}/s, {time} left',
  lost: 'The connection was lost.',
  continues: 'The connection was lost. The upload continues as soon as it is back.',
  loggedOut: 'Your session has ended. Log in again, then select the file once more.',
  refused: '{name} was refused.',
  invalid: '{name} {reason}.',
  status: 'The server answered with status {status}.',
  unreadable: 'The file cannot be read.',
} as const

/** What the script says (`static/uploads.js`). */
const TEXTS = JSON.stringify(UPLOADS)

interface UploadForm {
  /** `files`: each is sent to an address of its own below `to`; `image`: in parts, which can be resumed. */
  readonly kind:
    | { readonly name: 'files'; readonly to: string }
    | { readonly name: 'image'; readonly partBytes: number }
  /** The address that opens afterwards; the names, or how many there are, are added to it. */
  readonly done: string
  readonly id: string
  readonly label: string
  readonly hint?: Content
  /** Endings of names, with commas between them. */
  readonly accept?: string
  readonly isMultiple?: boolean
  readonly fields?: Content
  readonly button: string
  /** Instead of the form, where there is no script. */
  readonly unscripted: string
}

export function renderUploadForm({ kind, done, id, hint, ...form }: UploadForm): Html {
  const target =
    kind.name === 'files' ? { 'data-to': kind.to } : { 'data-part': String(kind.partBytes) }
  return html`<form
      class="scripted-only"
      ${attributes({ 'data-upload': kind.name, ...target, 'data-texts': TEXTS, 'data-done': done })}
    >
      <div class="field">
        <label for="${id}">${form.label}</label>
        <input${attributes({
          id,
          type: 'file',
          required: true,
          multiple: form.isMultiple === true,
          accept: form.accept,
          'aria-describedby': hint === undefined ? null : `${id}-hint`,
        })} />
        ${hint === undefined ? null : html`<p class="hint" id="${id}-hint">${hint}</p>`}
      </div>
      ${form.fields}
      <button disabled>${form.button}</button>
      ${kind.name === 'files' ? html`<div class="upload-status" role="status"></div>` : null}
    </form>
    <p class="unscripted-only">${form.unscripted}</p>`
}
