"""Which settings the services of a node have, so that one broker.conf serves them all.

A key that another service has passes in silence, and so does what the store accepts without effect; a key that nobody
has stays an error. The names stand here because this package may not import the services; a test compares them with
the settings classes. What every service has (`ServerSettings`) is left out.

A key that every service has cannot be given to all in one file if it is a port: leave `grpcPort` and `metricsPort` out
of a shared file, their defaults differ.
"""

from collections.abc import Mapping
from types import MappingProxyType

_NAMES = {
    "store": """
        brokerClusterName brokerName brokerIP1 listenPort internalHost internalPort internalOpen metasyncAddress
        metasyncTlsTrustCertPath storePathRootDir storePathCommitLog brokerRole brokerId slaveTimeout
        haSlaveFallbehindMax minInSyncReplicas slaveReadEnable offsetCheckInSlave accessMessageInMemoryMaxRatio
        mappedFileSizeCommitLog mappedFileSizeConsumeQueue maxHashSlotNum maxIndexNum messageIndexEnable prefaultBytes
        maxMessageSize enabledAppendPropCRC forceVerifyPropCRC checkCRCOnRecover messageDelayLevel autoCreateTopicEnable
        deduplicationWindow defaultTopicQueueNums flushDiskType flushIntervalCommitLog flushCommitLogLeastPages
        flushCommitLogThoroughInterval syncFlushTimeout flushIntervalConsumeQueue flushConsumeQueueLeastPages
        flushConsumeQueueThoroughInterval checkpointLogBytes deleteWhen fileReservedTime cleanResourceInterval
        deleteFileBatchMax diskMaxUsedSpaceRatio diskSpaceCleanForciblyRatio diskSpaceWarningLevelRatio
        cleanFileForciblyEnable maxMsgsNumBatch maxPullMessages maxPullBytes sendStreamWindow compiledWalker
        verifyWholeLogOnStart readUnCommitted scrubBytesPerSecond autoCreateSubscriptionGroup maxReceiveMessages
        maxInFlight maxInFlightTotal maxHeldBack advertisedAddress timerMaxDelaySec timerPrecisionMs timerWheelEnable
        tlsMode transactionCheckInterval transactionCheckMax transactionTimeOut namesrvAddr registerNameServerPeriod
        registerBrokerTimeoutMills haListenPort remotingMode remotingMaxConnections
        serverChannelMaxIdleTimeSeconds rocketmq5DeduplicationWindow
    """,
    "replicator": """
        brokerClusterName brokerName brokerId storePathRootDir storeAddress storeTlsTrustCertPath
        replicatorTlsTrustCertPath haSendHeartbeatInterval
        haHousekeepingInterval haTlsEnable haTlsTrustCertPath haListenHost haListenPort haAllowedPeers haMaxConnections
        haTransferBatchSize haFlowControlEnable maxHaTransferByteInSecond syncFromLastFile haMaxGapNotInSync
        inSyncReplicas minInSyncReplicas allAckInSyncStateSet enableAutoInSyncReplicas haMasterAddress
        haMasterReplicatorAddress haSlaveAck haConnectTimeout haReconnectMin haReconnectMax haRefusedPause
    """,
    "gateway": """
        brokerClusterName brokers brokerTlsTrustCertPath brokerCreditBytes gatewayName maxMessageSize
        autoCreateTopicEnable defaultTopicQueueNums advertisedAddress tlsMode
    """,
    "metasync": """
        brokerClusterName brokerName brokerRole storePathRootDir storeAddress storeServiceAddress
        storeTlsTrustCertPath rolePollInterval
        flushConsumerOffsetInterval flushDelayOffsetInterval autoCreateSubscriptionGroup metasyncMasterAddress
        metasyncTlsTrustCertPath metasyncInitialDelay metasyncInterval metasyncTimeout
    """,
    "admin": """
        adminNodes adminDirectory adminTimeout adminCollectInterval brokerClusterName consoleEnable consoleHost
        consolePort consoleNames consoleSessionMinutes jobsKept storeTlsTrustCertPath replicatorTlsTrustCertPath
        metasyncTlsTrustCertPath
    """,
    "names": """
        namesHost namesPort namesDirectory namesMaxConnections namesBrokerExpiry scanNotActiveBrokerInterval
        orderMessageEnable returnOrderTopicConfigToBroker
    """,
}

_WITHOUT_EFFECT = """
    spinLockCollisionRetreatOptimalDegree useABSLock topicQueueLockNum putMessageTimeout maxAsyncPutMessageRequests
    batchDispatchRequestThreadPoolNums enableBuildConsumeQueueConcurrently dispatchCqThreads dispatchCqCacheNum
    waitTimeMillsInSendQueue osPageCacheBusyTimeOutMills debugLockEnable putMsgIndexHightWater
    flushLeastPagesWhenWarmMapedFile mappedFileSwapEnable commitLogForceSwapMapInterval commitLogSwapMapInterval
    commitLogSwapMapReserveFileNum logicQueueForceSwapMapInterval logicQueueSwapMapInterval
    logicQueueSwapMapReserveFileNum cleanSwapedMapInterval dataReadAheadEnable fastFailIfNoBufferInStorePool
    transientStorePoolSize commitIntervalCommitLog commitCommitLogLeastPages commitCommitLogThoroughInterval
    pullBatchMaxMessageCount maxFilterMessageSize travelCqFileNumWhenGetMessage accessMessageInMemoryHotRatio
    recheckReputOffsetFromCq enableAsyncReput maxRecoveryCommitlogFiles enableAcceleratedRecovery
    enableLogConsumeQueueRepeatedlyBuildWhenRecover enableRunningFlagsInFlush autoMessageVersionOnTopicLen
    maxTopicLength enableCleanExpiredOffset maxBatchDeleteFilesNum dispatchFromSenderThread enableScheduleMessageStats
    brokerIP2 traceTopicEnable enablePropertyFilter
    rocketmqHome diskFallRecorded storePathConsumeQueue storePathIndex storeCheckpoint abortFile
    flushCommitLogTimed warmMapedFileEnable transientStorePoolEnable useReentrantLockWhenPutMessage
    sendMessageThreadPoolNums pullMessageThreadPoolNums putConsumeQueueDataByFileChannel messageIndexSafe
    longPollingEnable destroyMapedFileIntervalForcibly redeleteHangedFileInterval deleteCommitLogFilesInterval
    deleteConsumeQueueFilesInterval maxTransferBytesOnMessageInMemory maxTransferCountOnMessageInMemory
    maxTransferBytesOnMessageInDisk maxTransferCountOnMessageInDisk
"""

SERVICE_SETTINGS: Mapping[str, frozenset[str]] = MappingProxyType(
    {service: frozenset(names.split()) for service, names in _NAMES.items()}
)
"""The names of a service's own settings, by service."""

WITHOUT_EFFECT = frozenset(_WITHOUT_EFFECT.split())
"""RocketMQ's settings that the store accepts without effect; `StoreSettings.without_effect` has the reasons."""

KNOWN_TO_A_SERVICE = WITHOUT_EFFECT.union(*SERVICE_SETTINGS.values())
"""Every key that a broker.conf may hold, but for what all services have."""
