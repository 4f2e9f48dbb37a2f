/** The page on which an operator accepts or rejects a captured image. */
import type { H3Event } from 'h3'
import { AcceptSchema } from '#engine/capture/rules/order.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Capture, Captures } from './captures.ts'
import { page, seeOther } from '#kit/web/answers/answers.ts'
import { address, type Html } from '#kit/web/ui/html.ts'
import { formRoute, pageRoute } from '#kit/web/ui/page-routes.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { CAPTURE_PAGE, renderCapture } from './capture-view.ts'
import { renderActor, type CaptureSite } from './capture-routes.ts'

interface CapturePages {
  readonly home: string
  render(
    event: H3Event,
    view: { readonly title: string; readonly section: string; readonly body: Html },
  ): string
  /** Null: the server's address is unknown. */
  serverLink(event: H3Event, path: string): string | null
}

export function capturePageRoutes(
  { captures, log, now }: CaptureSite,
  pages: CapturePages,
): readonly Route[] {
  const { home } = pages

  function show(
    event: H3Event,
    capture: Capture,
    typed: { readonly name: string; readonly error: string } | null,
  ) {
    const serverLink = (path: string) => pages.serverLink(event, path)
    const clock = { now: now(), zone: 'UTC' } as const
    const body = renderCapture({ capture, clock, typed, serverLink })
    const view = { title: 'Captured image', section: home, body }
    return page(pages.render(event, view), typed === null ? 200 : 422)
  }

  async function accept(event: H3Event, form: URLSearchParams) {
    const id = form.get('id') ?? ''
    const name = form.get('name')?.trim() ?? ''
    const capture = find(captures, id)
    const refuse = (error: string) => show(event, capture, { name, error })
    if (!AcceptSchema.safeParse({ name }).success)
      return refuse('Must be a file name that ends in .img.zst')
    if (captures.isBound(name))
      return refuse(
        'Machines are assigned an image of this name, and would be flashed with this one instead',
      )
    try {
      await captures.accept(id, name)
    } catch (thrown) {
      if (thrown instanceof Fault && thrown.code === 'conflict')
        return refuse('Another image has this name')
      throw thrown
    }
    log.info(`the captured image ${name} was accepted (${renderActor(event)})`)
    return seeOther(address(home, { accepted: name }))
  }

  return [
    pageRoute(CAPTURE_PAGE, 'read', (event) =>
      show(event, find(captures, event.url.searchParams.get('id') ?? ''), null),
    ),
    formRoute(`${CAPTURE_PAGE}/accept`, 'admin', accept),
    formRoute(`${CAPTURE_PAGE}/reject`, 'admin', async (event, form) => {
      const { id, name } = find(captures, form.get('id') ?? '')
      await captures.reject(id)
      log.info(`the captured image ${name} was rejected (${renderActor(event)})`)
      return seeOther(address(home, { rejected: name }))
    }),
  ]
}

/** Its error is shown to a person who came too late. */
function find(captures: Captures, id: string): Capture {
  try {
    return captures.find(id)
  } catch (cause) {
    throw new Fault('not-found', 'It was accepted or removed.', { cause })
  }
}
