/** /ui/images: what is in the image folder, and how more comes in. */
import type { Answer } from '../../../kit/web/answers/answers.ts'
import { IMAGE_ENDINGS } from '../../../../appliance/disk-images.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import {
  card,
  copyBlock,
  emptyState,
  middle,
  renderBytes,
  tag,
} from '../../../kit/web/ui/elements.ts'
import { fillHtml, html } from '../../../kit/web/ui/html.ts'
import { numberColumn, renderTable } from '../../../kit/web/ui/tables.ts'
import type { EarlierContext } from './page-context.ts'
import { pageAt } from '../../pages/context-routes.ts'
import { renderUploadForm } from '../../../kit/web/ui/upload-form.ts'
import { PAGES } from '../../texts/texts.ts'

const t = PAGES.earlier.images

/** Listed as people do, with a word before the last one. */
const ENDINGS = {
  endings: IMAGE_ENDINGS.slice(0, -1).join(', '),
  last: IMAGE_ENDINGS.slice(-1).join(''),
}

const PATH = '/ui/images'

export const IMAGE_PAGES = [pageAt(PATH, show)]

async function show(context: EarlierContext): Promise<Answer> {
  const { shelf } = context.services
  const images = await shelf.list()
  const { baseUrl } = context.contact()
  const folder = html`<code>${shelf.root}</code>`
  return await context.show({
    title: t.title,
    section: PATH,
    count: images.length,
    body: html`${
      images.length === 0
        ? emptyState(t.empty.title, fillHtml(t.empty.text, { folder }))
        : renderTable({
            caption: t.caption,
            columns: [t.name, t.format, numberColumn(t.size)],
            rows: images.map(
              ({ name, format, size_bytes }) =>
                html`<tr>
                  <th scope="row">
                    <a class="mono" href="/images/${encodeURIComponent(name)}" download
                      >${middle(printable(name))}</a
                    >
                  </th>
                  <td>${tag(format)}</td>
                  <td class="number">${renderBytes(size_bytes)}</td>
                </tr>`,
            ),
          })
    }
    ${card({
      title: t.upload.title,
      body: html`${renderUploadForm({
          kind: { name: 'files', to: '/images/' },
          done: '/ui/images?uploaded=',
          id: 'upload-file',
          label: t.upload.label,
          button: PAGES.earlier.upload.button,
          unscripted: PAGES.earlier.upload.unscripted,
        })}
        <details>
          <summary>${t.upload.commands}</summary>
          ${copyBlock(renderCommands(baseUrl), t.upload.command)}
        </details>
        <p class="dim">${fillHtml(t.upload.hint, { folder, ...ENDINGS })}</p>`,
    })}`,
  })
}

/** The first asks for the password, and keeps the session for the second. */
const renderCommands = (baseUrl: string): string =>
  [
    `read -rsp 'Password: ' p; curl -sS -c session --data-urlencode "password=$p" ${baseUrl}/ui/login`,
    `curl -b session -T debian.img.zst ${baseUrl}/images/`,
  ].join('\n')
