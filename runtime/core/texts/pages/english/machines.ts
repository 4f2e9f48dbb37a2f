/** The machines: list, search, shortcuts, actions on many at once. */

/** A heading before and after it was done. */
const SET_NETWORK_BOOT = {
  one: 'Set the network boot of {count} machine',
  other: 'Set the network boot of {count} machines',
} as const
const SET_TEMPLATE = {
  one: 'Set the first-boot template of {count} machine',
  other: 'Set the first-boot template of {count} machines',
} as const

export const MACHINES = {
  list: {
    title: 'Machines',
    caption: 'Machines',
    selectPage: 'Select all on this page',
    countFound: '{found} of {all}',
    shortcuts: 'Keyboard shortcuts',
    /** A script counts. */
    arrived: { one: '{count} new machine', other: '{count} new machines' },
    table: 'Table',
    wall: 'Wall',
    addSummary: 'Add a machine by its MAC address',
    add: 'Add machine',
    macAddress: 'MAC address',
    notMac: '"{text}" is not a MAC address (six pairs of hexadecimal digits).',
    notAdded: 'The machine could not be added.',
    deleted: '{mac} was deleted. It reappears as discovered when it next boots from the network.',
    missing: '{mac} no longer exists.',
    queue: '{flashing} of at most {most} machines flashing, none waiting.',
    /** `{link}` to `{end}` leads to the waiting machines. */
    queueWaiting: '{flashing} of at most {most} machines flashing, {link}{waiting} waiting{end}.',
    none: {
      title: 'No machines yet',
      text: 'Boot one from the network and it appears here. Your DHCP server must point machines to {address}.',
      link: 'Set up DHCP',
    },
    noneFound: {
      title: 'No matching machines',
      text: 'Remove a term or clear the search.',
      link: 'Show all machines',
    },
  },
  search: {
    label: 'Search machines',
    placeholder: 'rack-1  mode:flash-once  -state:done  seen:<1h',
    filters: {
      all: 'All',
      needsAttention: 'Needs attention',
      discovered: 'Discovered',
      armed: 'Armed',
      running: 'Running',
      done: 'Done',
      seenThisHour: 'Seen this hour',
    },
    mistakes: {
      filter: '{term} is not a filter. The filters are {filters}.',
      filterMeant: '{term} is not a filter. Did you mean {suggestion}?',
      value: '{term} finds nothing: the filter has no such value.',
      valueMeant: '{term} finds nothing. Did you mean {suggestion}?',
      time: '{term} is not a time. Examples: {examples}.',
    },
    saved: {
      title: 'Saved searches',
      none: 'No saved searches in this browser.',
      hint: 'Search for something to save it here.',
      name: 'Save this search as',
      save: 'Save',
      remove: 'Remove',
      removeOne: 'Remove {name}',
    },
    refusals: {
      noName: 'Give the search a name.',
      noSearch: 'Search for something first, then save the search.',
      tooLong: 'A saved search has at most {query} characters, its name {name}.',
      tooMany: 'This browser cannot keep more searches. Remove one first.',
    },
    columns: {
      title: 'Columns',
      legend: 'Columns of the table',
      show: 'Show these',
      reset: 'Reset',
      hint: 'This browser remembers them.',
    },
  },
  keys: {
    title: 'Keyboard shortcuts',
    search: 'search',
    move: 'next and previous machine',
    select: 'select',
    open: 'open',
    assign: 'assign an image and a disk',
    flash: 'flash the selected machines, or this one',
    clear: 'clear selection',
    help: 'show this help',
    searchTitle: 'Search',
    searchText:
      'Terms match names, labels, images, serial numbers and addresses. Fields narrow the search: {examples}; prefix with {minus} to exclude.',
    close: 'Close',
  },
  bulk: {
    selected: 'Selected machines',
    /** A script counts. */
    countSelected: '{count} selected',
    allMatching: 'all {count} matching',
    action: 'Action',
    preview: 'Preview',
    clear: 'Clear',
    unknownAction: 'no such action',
    /** `menu` and `title` name an action, `before` is its preview, `after` its result. */
    actions: {
      flash: {
        menu: 'Flash again',
        title: 'Flash again',
        before: { one: 'Arm {count} machine', other: 'Arm {count} machines' },
        after: { one: 'Armed {count} machine', other: 'Armed {count} machines' },
      },
      image: {
        menu: 'Assign image…',
        title: 'Assign image',
        before: {
          one: 'Assign the image to {count} machine',
          other: 'Assign the image to {count} machines',
        },
        after: {
          one: 'Assigned the image to {count} machine',
          other: 'Assigned the image to {count} machines',
        },
      },
      mode: {
        menu: 'Set network boot…',
        title: 'Set network boot',
        before: SET_NETWORK_BOOT,
        after: SET_NETWORK_BOOT,
      },
      'first-boot': {
        menu: 'Set first-boot template…',
        title: 'Set first-boot template',
        before: SET_TEMPLATE,
        after: SET_TEMPLATE,
      },
      label: {
        menu: 'Label…',
        title: 'Label',
        before: { one: 'Label {count} machine', other: 'Label {count} machines' },
        after: { one: 'Labelled {count} machine', other: 'Labelled {count} machines' },
      },
      capture: {
        menu: 'Capture…',
        title: 'Capture',
        before: { one: 'Capture {count} machine', other: 'Capture {count} machines' },
        after: {
          one: 'Ordered the capture of {count} machine',
          other: 'Ordered the capture of {count} machines',
        },
      },
      refresh: {
        menu: 'Refresh inventory',
        title: 'Refresh inventory',
        before: {
          one: 'Refresh the inventory of {count} machine',
          other: 'Refresh the inventory of {count} machines',
        },
        after: {
          one: 'Requested the inventory of {count} machine',
          other: 'Requested the inventory of {count} machines',
        },
      },
      lock: {
        menu: 'Lock',
        title: 'Lock',
        before: { one: 'Lock {count} machine', other: 'Lock {count} machines' },
        after: { one: 'Locked {count} machine', other: 'Locked {count} machines' },
      },
      unlock: {
        menu: 'Unlock',
        title: 'Unlock',
        before: { one: 'Unlock {count} machine', other: 'Unlock {count} machines' },
        after: { one: 'Unlocked {count} machine', other: 'Unlocked {count} machines' },
      },
      delete: {
        menu: 'Delete',
        title: 'Delete',
        before: { one: 'Delete {count} machine', other: 'Delete {count} machines' },
        after: { one: 'Deleted {count} machine', other: 'Deleted {count} machines' },
      },
    },
    withSkipped: '{summary} ({count} skipped: {reasons})',
    resultSentence: '{summary}.',
    parameters: {
      title: { one: '{action}: {count} machine', other: '{action}: {count} machines' },
      addLabels: 'Add labels',
      addLabelsHint: 'Separate with commas.',
      removeLabels: 'Remove labels',
      captureNames: 'New images',
      /** `{name}`, `{mac}`: these two, in braces. */
      captureNamesHint: '{name} and {mac} stand for the name and the MAC address of each machine.',
      find: 'Find',
      noneMatches: 'No image matches.',
      tooMany: '{shown} of {count} images. Find one by a part of its name.',
    },
    typeDisks: 'Type {number}, the number of disks:',
    typeMachines: 'Type {number}, the number of machines:',
    typeToContinue: 'Type {number} to continue.',
    /** `{strong}` to `{end}` is emphasized. */
    erased: {
      one: '{strong}{count} disk will be erased and flashed{end} at the next network boot of these machines.',
      other:
        '{strong}{count} disks will be erased and flashed{end} at the next network boot of these machines.',
    },
    unlistedDisk: 'a disk that is not listed yet',
    /** `{disk}`: a serial number. */
    captured: '{disk} as {name}',
    groups: {
      erased: 'Disks that will be erased',
      machines: 'Machines',
      skipped: 'Skipped',
    },
    more: 'and {count} more',
    done: 'Done.',
    missing: 'It no longer exists.',
    back: 'Back to machines',
    empty: {
      title: 'No machines selected',
      text: 'Select machines, or all that match, and try again.',
    },
  },
} as const
