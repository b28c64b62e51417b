"""The names of settings, by service; written by `make docs` from the settings classes, and not edited.

They stand here because this package may not import the services.
"""

NAMES = {
    "store": """
        accessMessageInMemoryMaxRatio advertisedAddress autoCreateSubscriptionGroup autoCreateTopicEnable
        brokerClusterName brokerIP1 brokerId brokerName brokerRole checkCRCOnRecover checkpointLogBytes
        cleanFileForciblyEnable cleanResourceInterval compiledCore compiledWalker deduplicationWindow
        defaultTopicQueueNums deleteFileBatchMax deleteWhen diskMaxUsedSpaceRatio diskSpaceCleanForciblyRatio
        diskSpaceWarningLevelRatio enabledAppendPropCRC fileReservedTime flushCommitLogLeastPages
        flushCommitLogThoroughInterval flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval flushDiskType
        flushIntervalCommitLog flushIntervalConsumeQueue forceVerifyPropCRC haListenPort haSlaveFallbehindMax hooks
        internalHost internalOpen internalPort listenPort mappedFileSizeCommitLog mappedFileSizeConsumeQueue
        maxDelayTimeMills maxHashSlotNum maxHeldBack maxInFlight maxInFlightTotal maxIndexNum maxMessageSize
        maxMsgsNumBatch maxPullBytes maxPullMessages maxReceiveMessages messageDelayLevel messageIndexEnable
        metasyncAddress metasyncTlsTrustCertPath minInSyncReplicas minInvisibleTimeMillsForRecv namesrvAddr
        offsetCheckInSlave prefaultBytes readUnCommitted registerBrokerTimeoutMills registerNameServerPeriod
        remotingMaxConnections remotingMode repeatedSendWindow scrubBytesPerSecond sendStreamWindow
        serverChannelMaxIdleTimeSeconds slaveReadEnable slaveTimeout storePathCommitLog storePathRootDir
        syncFlushTimeout timerMaxDelaySec timerPrecisionMs timerWheelEnable tlsMode traceTopicEnable
        transactionCheckInterval transactionCheckMax transactionTimeOut verifyWholeLogOnStart
    """,
    "replicator": """
        allAckInSyncStateSet brokerClusterName brokerId brokerName enableAutoInSyncReplicas haAllowedPeers
        haConnectTimeout haFlowControlEnable haHousekeepingInterval haListenHost haListenPort haMasterAddress
        haMasterReplicatorAddress haMaxConnections haMaxGapNotInSync haReconnectMax haReconnectMin haRefusedPause
        haSendHeartbeatInterval haSlaveAck haTlsEnable haTlsTrustCertPath haTransferBatchSize inSyncReplicas
        maxHaTransferByteInSecond minInSyncReplicas replicatorTlsTrustCertPath storeAddress storePathRootDir
        storeTlsTrustCertPath syncFromLastFile
    """,
    "gateway": """
        advertisedAddress autoCreateTopicEnable brokerClusterName brokerCreditBytes brokerTlsTrustCertPath brokers
        compiledCore defaultTopicQueueNums gatewayName maxDelayTimeMills maxMessageSize minInvisibleTimeMillsForRecv
        tlsMode
    """,
    "metasync": """
        autoCreateSubscriptionGroup brokerClusterName brokerName brokerRole flushConsumerOffsetInterval
        flushDelayOffsetInterval metasyncInitialDelay metasyncInterval metasyncMasterAddress
        metasyncRemotingMasterAddress metasyncTimeout metasyncTlsTrustCertPath rolePollInterval storeAddress
        storePathRootDir storeServiceAddress storeTlsTrustCertPath
    """,
    "admin": """
        adminCollectInterval adminDirectory adminNodes adminTimeout brokerClusterName consoleEnable consoleHost
        consoleNames consolePort consoleSessionMinutes jobsKept metasyncTlsTrustCertPath replicatorTlsTrustCertPath
        storeTlsTrustCertPath
    """,
    "names": """
        namesBrokerExpiry namesDirectory namesHost namesMaxConnections namesPort orderMessageEnable
        returnOrderTopicConfigToBroker scanNotActiveBrokerInterval
    """,
}
"""What each service has of its own."""

WITHOUT_EFFECT = """
    abortFile accessMessageInMemoryHotRatio autoMessageVersionOnTopicLen batchDispatchRequestThreadPoolNums brokerIP2
    cleanSwapedMapInterval commitCommitLogLeastPages commitCommitLogThoroughInterval commitIntervalCommitLog
    commitLogForceSwapMapInterval commitLogSwapMapInterval commitLogSwapMapReserveFileNum dataReadAheadEnable
    debugLockEnable deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval destroyMapedFileIntervalForcibly
    diskFallRecorded dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread enableAcceleratedRecovery
    enableAsyncReput enableBuildConsumeQueueConcurrently enableCleanExpiredOffset
    enableLogConsumeQueueRepeatedlyBuildWhenRecover enablePropertyFilter enableRunningFlagsInFlush
    enableScheduleMessageStats fastFailIfNoBufferInStorePool flushCommitLogTimed flushLeastPagesWhenWarmMapedFile
    logicQueueForceSwapMapInterval logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum longPollingEnable
    mappedFileSwapEnable maxAsyncPutMessageRequests maxBatchDeleteFilesNum maxFilterMessageSize
    maxRecoveryCommitlogFiles maxTopicLength maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory
    maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory messageIndexSafe osPageCacheBusyTimeOutMills
    pullBatchMaxMessageCount pullMessageThreadPoolNums putConsumeQueueDataByFileChannel putMessageTimeout
    putMsgIndexHightWater recheckReputOffsetFromCq redeleteHangedFileInterval rocketmqHome sendMessageThreadPoolNums
    spinLockCollisionRetreatOptimalDegree storeCheckpoint storePathConsumeQueue storePathIndex topicQueueLockNum
    transientStorePoolEnable transientStorePoolSize travelCqFileNumWhenGetMessage useABSLock
    useReentrantLockWhenPutMessage waitTimeMillsInSendQueue warmMapedFileEnable
"""
"""What the store accepts of RocketMQ's settings without effect."""
