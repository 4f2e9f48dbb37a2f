/** The documents of the Redfish BMC of the tests. */
import type { Lies } from './redfish-fake.ts'

export const HOSTILE = '\u001b[2J</script><img src=x onerror=alert(1)>\u202e'
export const SYSTEM = '/redfish/v1/Systems/1'
export const SETTINGS = `${SYSTEM}/SD`
export const TASK = '/redfish/v1/TaskService/Tasks/7'
export const MEDIA = '/redfish/v1/Managers/1/VirtualMedia/Cd'
const link = (path: string) => ({ '@odata.id': path })

const collection = (path: string, ...members: readonly string[]) => ({
  '@odata.id': path,
  Name: 'collection',
  Members: members.map(link),
  'Members@odata.count': members.length,
})

/** The documents by their paths. */
export function documentsOf(
  state: {
    isOn: boolean
    boot: Record<string, unknown>
    image: string | null
    early: { readonly on: boolean; left: number } | null
    slowLeft: number
  },
  lies: Lies,
  etag: () => string,
): Readonly<Record<string, () => Response>> {
  const readPower = () => {
    const { early } = state
    if (state.isOn && lies.slowOn !== null && state.slowLeft > 0) {
      state.slowLeft -= 1
      return lies.slowOn.reads
    }
    if (early !== null && early.left > 0) {
      early.left -= 1
      return early.on ? 'On' : 'Off'
    }
    return state.isOn ? 'On' : 'Off'
  }
  // Without a member that is undefined.
  const readBoot = () => ({
    ...state.boot,
    ...(lies.mode === 'absent' ? { BootSourceOverrideMode: undefined } : {}),
  })
  const bare: Readonly<Record<string, () => object>> = {
    '/redfish': () => ({ v1: '/redfish/v1/' }),
    '/redfish/v1': () => ({
      '@odata.id': '/redfish/v1/',
      Id: 'RootService',
      Name: lies.hostile ? HOSTILE : 'Root Service',
      RedfishVersion: '1.6.0',
      UUID: '92384634-2938-2342-8820-489239905423',
      Systems: link('/redfish/v1/Systems'),
      Managers: link('/redfish/v1/Managers'),
      SessionService: link('/redfish/v1/SessionService'),
      Links: { Sessions: link('/redfish/v1/SessionService/Sessions') },
    }),
    '/redfish/v1/SessionService': () => ({
      '@odata.id': '/redfish/v1/SessionService',
      Id: 'SessionService',
      Name: 'Session Service',
      ServiceEnabled: true,
      SessionTimeout: 600,
      Sessions: link('/redfish/v1/SessionService/Sessions'),
    }),
    '/redfish/v1/SessionService/Sessions': () => collection('/redfish/v1/SessionService/Sessions'),
    '/redfish/v1/Systems': () => collection('/redfish/v1/Systems', SYSTEM),
    '/redfish/v1/Managers': () => collection('/redfish/v1/Managers', '/redfish/v1/Managers/1'),
    '/redfish/v1/Managers/1': () => ({
      '@odata.id': '/redfish/v1/Managers/1',
      Id: '1',
      Name: 'BMC',
      FirmwareVersion: '2.5',
      VirtualMedia: link('/redfish/v1/Managers/1/VirtualMedia'),
    }),
    '/redfish/v1/Managers/1/VirtualMedia': () =>
      collection('/redfish/v1/Managers/1/VirtualMedia', MEDIA),
    [MEDIA]: () => ({
      '@odata.id': MEDIA,
      Id: 'Cd',
      Name: 'Virtual CD',
      MediaTypes: ['CD', 'DVD'],
      Image: state.image,
      Inserted: state.image !== null,
      Actions: {
        '#VirtualMedia.InsertMedia': { target: `${MEDIA}/Actions/VirtualMedia.InsertMedia` },
        '#VirtualMedia.EjectMedia': { target: `${MEDIA}/Actions/VirtualMedia.EjectMedia` },
      },
    }),
    [TASK]: () => ({
      '@odata.id': TASK,
      Id: '7',
      Name: 'Task',
      TaskState: lies.task ?? 'Completed',
      Messages: [{ Message: lies.hostile ? HOSTILE : 'The fan is missing' }],
    }),
    [SETTINGS]: () => ({ '@odata.id': SETTINGS, '@odata.etag': etag(), Boot: readBoot() }),
    [SYSTEM]: () => ({
      '@odata.id': SYSTEM,
      '@odata.etag': etag(),
      Id: '1',
      Name: 'System',
      UUID: '38947555-7742-3448-3784-823347823834',
      Manufacturer: lies.hostile ? HOSTILE : 'Contoso',
      PowerState: readPower(),
      Status: { State: 'Enabled', Health: 'OK' },
      Boot: {
        ...readBoot(),
        'BootSourceOverrideTarget@Redfish.AllowableValues': [
          'None',
          'Pxe',
          'Cd',
          'Hdd',
          'UefiHttp',
        ],
      },
      ...(lies.settings ? { '@Redfish.Settings': { SettingsObject: link(SETTINGS) } } : {}),
      Links: { ManagedBy: [link('/redfish/v1/Managers/1')] },
      Actions: {
        '#ComputerSystem.Reset': {
          target: `${SYSTEM}/Actions/ComputerSystem.Reset`,
          'ResetType@Redfish.AllowableValues': ['On', 'ForceOff'],
        },
      },
    }),
  }
  return Object.fromEntries(
    Object.entries(bare).map(([path, make]) => [
      path,
      () =>
        respond(200, make(), isTagged(path) ? { etag: lies.wrongHeaderTag ? '"0"' : etag() } : {}),
    ]),
  )
}

const isTagged = (path: string) => path === SYSTEM || path === SETTINGS

export const respond = (
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
) =>
  new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'odata-version': '4.0', ...headers },
  })
