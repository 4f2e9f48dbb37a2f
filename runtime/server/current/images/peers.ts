/** `/pxe/{mac}/peers`: which machines of its site one reads its image from, while it is flashed. */
import { z } from 'zod'
import { PEER_PORT } from '#appliance/contract.ts'
import { createPeerChains } from '#fleet/peers/peer-chains.ts'
import { ASK_SECONDS, findNeighbourhood } from '#fleet/peers/rules/chain.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import { isAddressIn } from '#kit/net/rules/direct-host.ts'
import { json, type Answer } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Contact } from '#server/routes/transition.ts'
import type { Site } from '#server/routes/site.ts'
import { hasUnfinishedFlash, type Machine } from '#server/current/machines/rules/machine.ts'
import type { PxeRules, Surroundings } from '#server/current/machines/rules/surroundings.ts'

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

const ReaderSchema = z.object({
  visit: z.uuid().meta({ description: 'Made anew for each flash' }),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ description: 'The digest of the image in the plan' }),
  read_bytes: count.meta({ description: 'How much of the image it has read' }),
  window_bytes: count.meta({ description: 'How many of the last of these it keeps for others' }),
  serves: z.boolean().meta({ description: 'Whether it hands on what it keeps' }),
})

const NeighboursSchema = z.object({
  key: z.string().meta({ description: 'The image is at http://{neighbour}/{key}/image' }),
  before: z.array(z.string()).meta({ description: 'Neighbours as host:port, the nearest first' }),
  hops: z.int().meta({ description: 'How many machines stand between it and the cache' }),
  allow: z.string().nullable().meta({ description: 'The network to hand on to; null: any' }),
  ask_seconds: z.int().meta({ description: 'When to ask again' }),
})

const MAX_BYTES = 1024

/** Long enough not to be guessed. */
const KEY_CHARACTERS = 32

interface PeerRules extends Pick<Surroundings, 'findImage'> {
  settings(): Pick<PxeRules, 'peers'>
  cacheUrl(): string | null
  readonly bootKey: Pick<Secret, 'sign'>
}

/** Answers 404 while `[peers]` is off. */
export function peerRoutes(site: Site<Machine>, rules: PeerRules): readonly Route[] {
  const chains = createPeerChains(() => site.elapsed?.() ?? performance.now())

  function answer(machine: Machine, said: z.infer<typeof ReaderSchema>, contact: Contact): Answer {
    const { mac } = machine
    const { ip } = contact
    const found = ip === null ? null : findReaders(rules, machine, contact)
    if (ip === null || found === null) throw refuse(404, `${mac} has no neighbours`)
    if (said.sha256 !== found.sha256) throw refuse(409, `${mac} has another image by now`)
    const { visit, read_bytes: readBytes, window_bytes: windowBytes, serves } = said
    const name = `${found.site}\n${found.sha256}`
    const { before, hops } = chains.hear(name, { mac, visit, ip, readBytes, windowBytes, serves })
    return json({
      key: rules.bootKey.sign(`hands on ${name}`).slice(0, KEY_CHARACTERS),
      before: before.map((each) => renderPeer(each.ip)),
      hops,
      allow: isAddressIn(ip, found.site) ? found.site : null,
      ask_seconds: ASK_SECONDS,
    })
  }

  return [
    {
      method: 'POST',
      path: '/pxe/:mac/peers',
      access: 'open',
      takes: 'json',
      admit: (event) => site.admitMachine(readMac(event), 'report', site.contact(event)),
      most: MAX_BYTES,
      doc: {
        summary: 'Which machines hand this one its image on, while it is flashed',
        body: renderSchema(ReaderSchema, 'input'),
        answers: { 200: renderSchema(NeighboursSchema, 'output') },
        refuses: [401, 409],
      },
      handle(event, body) {
        const said = checked(ReaderSchema, body)
        return answer(site.findMachine(readMac(event)), said, site.contact(event))
      },
    },
  ]
}

/** Who may read the image from the machine while it is flashed; null: nobody. */
function findReaders(
  { settings, cacheUrl, findImage }: PeerRules,
  machine: Machine,
  { ip }: Contact,
): ReturnType<typeof findNeighbourhood> {
  const { bty_image_ref: ref, labels } = machine
  const image = ref === null || !hasUnfinishedFlash(machine) ? null : findImage(ref)
  if (image === null) return null
  return findNeighbourhood(image, { ip, labels }, { peers: settings().peers, cacheUrl: cacheUrl() })
}

const renderPeer = (ip: string) => `${ip.includes(':') ? `[${ip}]` : ip}:${PEER_PORT}`
