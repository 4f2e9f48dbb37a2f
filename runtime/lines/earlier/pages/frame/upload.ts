/** A form that uploads one file with its progress; it needs the page's script. */
import { html, type Html } from '../../../../web/ui/html.ts'

/** `to`: the address below which the file gets its own name. */
export const renderUpload = (to: string, label: string): Html =>
  html`<form class="row scripted-only" data-upload="${to}">
      <input type="file" name="file" required aria-label="${label}" />
      <button class="primary">Upload</button>
      <progress hidden max="1" value="0" aria-label="Upload"></progress>
      <span role="status"></span>
    </form>
    <noscript><p>Uploading from a browser needs JavaScript.</p></noscript>`
