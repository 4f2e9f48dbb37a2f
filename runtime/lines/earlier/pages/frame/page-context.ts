/** The context of every page of this line, and the kinds of their routes. */
import type { H3Event, HTTPResponse } from 'h3'
import type { ImageShelf } from '../../../../services/image/image-shelf.ts'
import type { ProvisionFiles } from '../../../../services/flash/provision-files.ts'
import type { InterfaceAddress } from '../../../../core/boot/pxe-activation.ts'
import type { PxeHelper } from '../../../../services/boot/pxe-helper.ts'
import type { LiveFiles } from '../../../../services/boot/live-files.ts'
import type { ReleaseFetches } from '../../../../services/boot/releases.ts'
import { page, seeOther } from '../../../../web/http/answers.ts'
import type { Route } from '../../../../web/http/route.ts'
import { banner } from '../../../../web/ui/elements.ts'
import type { Frame, PageView } from '../../../../web/ui/frame.ts'
import { address, type Content } from '../../../../web/ui/html.ts'
import { readTheme } from '../../../../web/ui/theme.ts'
import type { Clock } from '../../../../web/ui/times.ts'
import type { Site } from '../../../../web/fleet/site.ts'
import type { LineConfig } from '../../assembly/configuration.ts'
import type { Workflows } from '../../assembly/workflows.ts'
import type { Machine } from '../../rules/machine.ts'

export interface PxeServices extends PxeHelper {
  listAddresses(): readonly InterfaceAddress[]
  /** The one that the server listens on. */
  port(): number
}

export interface PageDependencies {
  readonly frame: Frame
  readonly services: {
    readonly config: LineConfig
    readonly shelf: ImageShelf
    readonly files: ProvisionFiles
    readonly workflows: Workflows
    readonly bootFiles: LiveFiles
    readonly releases: ReleaseFetches
    readonly pxe: PxeServices
  }
  /** Who runs the server; its password is the operator's. */
  readonly user: string
  /** An IANA name. */
  zone(): string
}

/** Without what the context itself adds. */
type Page = Omit<PageView, 'theme' | 'here' | 'alarms'>

export interface PageContext extends PageDependencies {
  readonly site: Site<Machine>
  clock(): Clock
  show(event: H3Event, view: Page): Promise<HTTPResponse>
}

export function createPageContext(site: Site<Machine>, parts: PageDependencies): PageContext {
  return {
    ...parts,
    site,
    clock: () => ({ now: site.now(), zone: parts.zone() }),
    async show(event, view) {
      const { pathname, search } = event.url
      const text = parts.frame.page({
        ...view,
        theme: readTheme(event),
        here: `${pathname}${search}`,
        // This line has no page of events.
        alarms: 0,
      })
      return page(text, 200, { vary: 'cookie' })
    },
  }
}

/** Why the form that led here was refused, as a banner. */
export function messageOf({ site }: PageContext, event: H3Event): Content {
  const notice = site.notices.read(event)
  return notice === null ? null : banner('failed', notice.error)
}

/** Back to a page, which then says why. */
export const goBack = (
  { site }: PageContext,
  event: H3Event,
  path: string,
  error: string,
): HTTPResponse => seeOther(address(path, { notice: site.notices.keep(event, error) }))

type Handle = (event: H3Event) => unknown

export const pageRoute = (path: string, handle: Handle): Route => ({
  method: 'GET',
  path,
  access: 'page',
  handle,
})

export const buttonRoute = (path: string, handle: Handle): Route => ({
  method: 'POST',
  path,
  access: 'page',
  handle,
})

export const formRoute = (
  path: string,
  handle: (event: H3Event, form: URLSearchParams) => unknown,
  most?: number,
): Route => ({
  method: 'POST',
  path,
  access: 'page',
  takes: 'form',
  handle,
  ...(most === undefined ? {} : { most }),
})
