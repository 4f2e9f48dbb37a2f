/** What a server answers itself while another one leads, or nobody does; everything else is the leader's. */
import type { H3, H3Event } from 'h3'
import { Fault } from '#kit/foundation/fault.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { openServed } from '#kit/host/served-files.ts'
import { renderAutoexec, renderBootstrap } from '#fleet/boot/rules/boot-script.ts'
import { renderGrubConfig } from '#fleet/boot/rules/grub-script.ts'
import { isInfiniBand } from '#kit/net/rules/mac.ts'
import { assetRoute, type Assets } from '#kit/web/answers/assets.ts'
import { text, type Answer } from '#kit/web/answers/answers.ts'
import { peerOf, type LogSink, type WebSettings } from '#kit/web/answers/caller.ts'
import { readAddress, readFileName, readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Guard } from '#kit/web/access/guard.ts'
import { createApp } from '#kit/web/http/dispatch.ts'
import { healthRoutes } from '#kit/web/http/metrics.ts'
import { createPeers } from '#kit/web/http/entrance.ts'
import { renderErrorPage } from '#kit/web/ui/site-views.ts'
import { createLayout } from '#kit/web/ui/layout.ts'
import { AUTOEXEC } from './boot-files.ts'
import {
  exitOf,
  GRUB_CONFIG,
  createContactReader,
  readGrubContact,
  readOwnMac,
  createLeaderless,
  type LeaderlessDependencies,
} from './contact.ts'
import type { Contact } from './transition.ts'

export interface StandbyDependencies extends LeaderlessDependencies {
  readonly bootDir: string
  readonly assets: Assets
  readonly release: string
  settings(): WebSettings
  /** Null: changes are possible by way of this server. */
  findObstacle(): MaybePromise<string | null>
  /** Whether the request may have been carried out although its answer was lost. */
  isDoubtful(event: H3Event): boolean
  /** For machines that name themselves. */
  onBootFile(event: H3Event): void
  readonly log: LogSink
}

/** What nobody passes on is answered 503; boot scripts wait in line. */
export function createStandbyApp(parts: StandbyDependencies): H3 {
  const { assets, release: version, settings, findObstacle, isDoubtful, log } = parts
  const layout = createLayout({ version, assetUrl: assets.url, nav: [] })
  const routes: readonly Route[] = [
    ...healthRoutes(version, findObstacle),
    assetRoute(assets),
    bootFileRoute(parts),
    ...scriptRoutes(parts),
  ]
  return createApp({
    routes,
    guard: OPEN_GUARD,
    findPeer: createPeers(settings),
    failures: { log, renderError: (view) => renderErrorPage(layout, view) },
    explainAbsence: (event) => (isDoubtful(event) ? doubtful() : noLeader()),
  })
}

const noLeader = () =>
  new Fault('no-leader', 'no server leads this fleet at the moment', { hint: 'Try again.' })

const doubtful = () =>
  refuse(502, 'the server that leads stopped responding during this request', {
    hint: 'Check whether it was done before you try again.',
  })

const NOBODY = { kind: 'anonymous' } as const

/** Everything here is open and changes nothing. */
const OPEN_GUARD: Guard = {
  identifyOperator: () => NOBODY,
  identify: () => NOBODY,
  checkOrigin: () => undefined,
  checkScope: () => undefined,
  checkReach: () => undefined,
  permits: () => true,
  isStillValid: () => false,
}

const contactOf = createContactReader(() => new Date())

function bootFileRoute({ bootDir, otherServers, onBootFile }: StandbyDependencies): Route {
  return {
    method: 'GET',
    path: '/boot/:name',
    access: 'open',
    async handle(event) {
      const name = readFileName(event)
      if (name === AUTOEXEC) {
        const { baseUrl } = contactOf(event)
        return text(renderAutoexec(baseUrl, otherServers?.(baseUrl)))
      }
      const file = await openServed(bootDir, name)
      // It would have been passed on if anybody led.
      if (file === null) throw noLeader()
      if (event.req.method !== 'HEAD') onBootFile(event)
      return (await answerFile(event, name, file)).answer
    },
  }
}

function scriptRoutes(parts: StandbyDependencies): readonly Route[] {
  const { otherServers, settings } = parts
  const renderLeaderless = createLeaderless(parts)
  const ofGrub = (event: H3Event) =>
    readGrubContact({ peer: peerOf, settings, contact: contactOf }, event)

  function answerScript(event: H3Event, contact: Contact): Answer {
    if (isInfiniBand(readAddress(event))) return text(exitOf(contact))
    return text(renderLeaderless(readMac(event), contact))
  }

  return [
    open(BOOTSTRAP, (event) => text(renderBootstrap(contactOf(event).baseUrl, readOwnMac(event)))),
    open(GRUB_CONFIG, (event) => {
      const { baseUrl, loader } = ofGrub(event)
      return text(renderGrubConfig(loader, otherServers?.(baseUrl)))
    }),
    open('/pxe/:mac', (event) => answerScript(event, contactOf(event))),
    open('/pxe/:mac.grub', (event) => answerScript(event, ofGrub(event))),
  ]
}

const open = (path: string, handle: (event: H3Event) => Answer): Route => ({
  method: 'GET',
  path,
  access: 'open',
  handle,
})

const BOOTSTRAP = '/pxe-bootstrap.ipxe'

/** Answered at once, whoever leads; says nothing of any machine. */
export const isOwnPath = (path: string): boolean =>
  path === '/healthz' ||
  path === BOOTSTRAP ||
  path === GRUB_CONFIG ||
  path === `/boot/${AUTOEXEC}` ||
  path.startsWith('/static/')
