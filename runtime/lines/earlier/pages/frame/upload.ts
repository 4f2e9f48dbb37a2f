/** A form that uploads files with progress; it needs the page's script. */
import { UPLOAD_TEXTS } from '../../../../web/ui/upload-texts.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'

const t = PAGES.earlier.upload

interface Upload {
  /** The address below which each file gets its own name. */
  readonly to: string
  /** The page that opens once they are there. */
  readonly page: string
  readonly label: string
}

export const renderUpload = ({ to, page, label }: Upload): Html =>
  html`<form
      class="row scripted-only"
      data-upload="files"
      data-texts="${UPLOAD_TEXTS}"
      data-to="${to}"
      data-done="${page}?uploaded="
    >
      <input type="file" name="file" required aria-label="${label}" />
      <button class="primary" disabled>${t.button}</button>
    </form>
    <noscript><p>${t.unscripted}</p></noscript>`
